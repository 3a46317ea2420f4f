#define _GNU_SOURCE
/* The getenv that the program's libraries call. It handles one name by itself: NVTX_INJECTION64_PATH, where it is not
 * set. Everything else goes to the next getenv in the global scope, and the environment is never written. The loader
 * may call this before it has relocated this library, for an IFUNC resolver of another library: no function and no
 * variable of another library can be reached then. Later, until the constructor has run, dlsym could run into an
 * allocator that is itself just reading its variables, so the environment is searched here. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/atload.h"
#include "base/config.h"
#include "base/sys.h"
#include "base/thread.h"
#include "hooks/original.h"
#include "nvtx/nvtx.h"
#include "spool/dict.h"
#include "spool/module.h"

/* <stdlib.h> promises that the name is never null; what a null does is the next one's business. */
MT_EXPORT char *getenv(const char *name);
typedef char *(*getenv_function)(const char *name);

static const char variable[] = "NVTX_INJECTION64_PATH";
static getenv_function next_getenv MT_AT_LOAD;

/* Right once the loader has relocated this library. */
static const void *volatile relocated = &next_getenv;

/* The value if the entry is "name=value", else NULL. */
static char *value_of(char *entry, const char *name) {
  while (*name && *entry == *name) entry++, name++;
  return !*name && *entry == '=' ? entry + 1 : NULL;
}

static char *before_constructor(const char *name) {
  for (char **entry = environ; entry && *entry; entry++) {
    char *value = value_of(*entry, name);
    if (value) return value;
  }
  return NULL;
}

/* Tools that come with the CUDA driver advertise themselves by a file; NVTX checks for them only where no library is
 * named, so naming one would disable them. */
static bool driver_tool_present(void) {
  static int known; /* 1 no, 2 yes; two threads that search at once find the same */
  int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (answer) return answer == 2;
  char path[MT_PATH_MAX];
  getenv_function next = __atomic_load_n(&next_getenv, __ATOMIC_RELAXED);
  const char *folder = next ? next("XDG_RUNTIME_DIR") : before_constructor("XDG_RUNTIME_DIR");
  static const char file[] = "/nvidia/nvtx/nvtx-cuda.yaml";
  bool found =
      mt_sys_exists("/run/nvidia/nvtx/nvtx-cuda.yaml") || mt_sys_exists("/run/nvidia/nvtx/user.0/nvtx-cuda.yaml");
  if (!found && folder && *folder && strlen(folder) + sizeof file <= sizeof path) {
    strcpy(stpcpy(path, folder), file);
    found = mt_sys_exists(path);
  }
  __atomic_store_n(&known, found ? 2 : 1, __ATOMIC_RELAXED);
  return found;
}

/* The loader's name of this library: opening it yields the loaded one, without file access, even if the file, the
 * working directory or the root has changed. NULL when this code is part of a program. */
static const char *own_path(void) {
  struct link_map *map = mt_module_find((uintptr_t)&own_path);
  return map && map->l_name && map->l_name[0] ? map->l_name : NULL;
}

bool mt_nvtx_wanted(void) {
  if (!mt_config.loaded) mt_config_load(environ);
  return !mt_config.no_nvtx && !mt_config.disabled && !mt_recorder_is_off();
}

static char *injection_path(void) {
  int error = errno;
  const char *path = mt_nvtx_wanted() && !driver_tool_present() ? own_path() : NULL;
  errno = error;
  return (char *)path;
}

static bool is_injection(const char *name) {
  const char *want = variable;
  while (*want && *name == *want) name++, want++;
  return *name == *want;
}

char *getenv(const char *name) {
  getenv_function next = __atomic_load_n(&next_getenv, __ATOMIC_RELAXED);
  if (MT_LIKELY(next)) {
    if (MT_LIKELY(!name || name[0] != 'N' || !is_injection(name))) return next(name);
    char *value = next(name);
    return value ? value : injection_path();
  }
  /* The C library's own has no environment either before it is initialised, and answers so. */
  if (relocated != &next_getenv || !environ || !name || !*name) return NULL;
  char *value = before_constructor(name);
  return value || !is_injection(name) ? value : injection_path();
}

void mt_nvtx_load(void) {
  getenv_function next = (getenv_function)mt_original_dlsym(RTLD_NEXT, "getenv");
  if (next != getenv) __atomic_store_n(&next_getenv, next, __ATOMIC_RELEASE);
}

void mt_nvtx_note(void) {
  if (mt_config.no_nvtx) return;
  getenv_function next = __atomic_load_n(&next_getenv, __ATOMIC_RELAXED);
  const char *value = next ? next(variable) : before_constructor(variable), *own = own_path();
  if (!value && !driver_tool_present()) return;
  if (value && own && !strcmp(value, own)) return;
  const char *slash = value ? strrchr(value, '/') : NULL, *base = slash ? slash + 1 : value ? value : "the CUDA driver";
  char text[256] = "taken by ";
  size_t size = strlen(text), n = strnlen(base, sizeof text - size);
  memcpy(text + size, base, n);
  mt_dict_info("nvtx", text, size + n);
}
