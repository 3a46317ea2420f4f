#define _GNU_SOURCE
/* memtrace_start: for a program that was not started with the library and loads it by itself. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"
#include "hooks/hooks.h"
#include "include/memtrace.h"
#include "process/start.h"
#include "spool/dict.h"

#define MT_CUDA_NOT_INITIALIZED 3

#pragma weak strerrordesc_np

/* What the main program's calls reach by name: the loader lists a preloaded library before the C library. */
static bool is_preloaded(void) {
  void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
  if (!program) return false;
  bool first = mt_real_is_ours(mt_real_dlsym(program, "dlsym"));
  dlclose(program);
  return first;
}

/* Whether somebody has called cuInit: then blocks may be there of which nothing is known. */
static bool is_cuda_in_use(void) {
  int (*count)(int *) = (int (*)(int *))mt_driver_symbol("cuDeviceGetCount");
  int devices;
  return count && count(&devices) != MT_CUDA_NOT_INITIALIZED;
}

static const char *started; /* NULL: the library was preloaded */

void mt_start_note(void) {
  if (started) mt_dict_info("start", started, strlen(started));
}

MT_EXPORT int memtrace_start(void) {
  if (!memtrace_active()) return MEMTRACE_ERR_OFF;
  int error = errno, result = MEMTRACE_OK;
  if (!started && !is_preloaded()) {
    result = is_cuda_in_use() ? MEMTRACE_LATE : MEMTRACE_OK;
    started = result == MEMTRACE_LATE ? "late" : "early";
    if (!mt_route_rebind()) {
      mt_log(MT_LOG_ERROR, "some libraries are not recorded, for the system does not let memory protection be changed: ", strerrordesc_np ? strerrordesc_np(errno) : "", "");
      result = MEMTRACE_ERR_SYSTEM;
    }
    if (result == MEMTRACE_LATE) mt_route_replace();
  }
  errno = error;
  return result;
}
