#define _GNU_SOURCE
#include "spool/cgroup.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "spool.h"

#define MT_CGROUPS 4096u
#define MT_CGROUP_PATH 1024u

/* A number, UINT64_MAX where there is none: "max", or no such file. */
static uint64_t number_in(char *folder, const char *file) {
  char text[32], *end = folder + strlen(folder), *rest;
  stpcpy(stpcpy(end, "/"), file);
  ssize_t n = mt_sys_read_file(folder, text, sizeof text);
  *end = 0;
  if (n <= 0) return UINT64_MAX;
  uint64_t value = strtoul(text, &rest, 10);
  return rest == text ? UINT64_MAX : value;
}

/* A group's limit holds for all below it. */
static uint64_t available_in_all(char *folder, size_t root, const char *limit, const char *usage) {
  uint64_t least = UINT64_MAX;
  for (;;) {
    uint64_t most = number_in(folder, limit), used = number_in(folder, usage);
    if (most != UINT64_MAX && used != UINT64_MAX) {
      uint64_t left = used < most ? most - used : 0;
      if (left < least) least = left;
    }
    char *last = strrchr(folder, '/');
    if (!last || last < folder + root) return least;
    *last = 0;
  }
}

static bool is_memory(const char *list, size_t length) {
  static const char name[] = "memory";
  const char *at = memmem(list, length, name, sizeof name - 1);
  return at && (at == list || at[-1] == ',') && (at[sizeof name - 1] == ',' || at[sizeof name - 1] == ':');
}

/* Lines such as 4:memory:/system/one (cgroup v1) and 0::/system/one (cgroup v2). */
uint64_t mt_cgroup_memory_available_in(const char *groups, const char *root) {
  uint64_t least = UINT64_MAX;
  for (const char *line = groups, *next; *line; line = next) {
    size_t length = strcspn(line, "\n");
    next = line + length + (line[length] == '\n');
    const char *list = memchr(line, ':', length), *path = list ? strchr(list + 1, ':') : NULL;
    if (!path || path >= line + length) continue;
    bool second = path == list + 1;
    size_t size = length - (size_t)(path + 1 - line);
    if ((!second && !is_memory(list + 1, (size_t)(path - list - 1))) || size + strlen(root) + 64 > MT_CGROUP_PATH)
      continue;
    char folder[MT_CGROUP_PATH], *end = stpcpy(stpcpy(folder, root), second ? "" : "/memory");
    size_t top = (size_t)(end - folder);
    memcpy(end, path + 1, size);
    end[size] = 0;
    if (size && end[size - 1] == '/') end[size - 1] = 0;
    uint64_t left = second ? available_in_all(folder, top, "memory.max", "memory.current")
                           : available_in_all(folder, top, "memory.limit_in_bytes", "memory.usage_in_bytes");
    if (left < least) least = left;
  }
  return least;
}

uint64_t mt_cgroup_memory_available(void) {
  char groups[MT_CGROUPS];
  return mt_sys_read_file("/proc/thread-self/cgroup", groups, sizeof groups) > 0
             ? mt_cgroup_memory_available_in(groups, "/sys/fs/cgroup")
             : UINT64_MAX;
}
