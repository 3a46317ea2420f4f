#define _GNU_SOURCE
/* memtrace_start: for a program that was not started with the library and loads it by itself, and for one whose library
 * was asleep. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapters/snapshot.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/thread.h"
#include "hooks/hooks.h"
#include "include/memtrace.h"
#include "process/recorder.h"
#include "process/start.h"
#include "spool/dict.h"

#define CUDA_ERROR_NOT_INITIALIZED 3

#pragma weak strerrordesc_np

/* What the main program's calls reach by name: the loader lists a preloaded library before the C library. */
static bool is_preloaded(void) {
  void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
  if (!program) return false;
  bool first = mt_original_is_wrapper(mt_original_dlsym(program, "dlsym"));
  dlclose(program);
  return first;
}

/* Whether cuInit was called: then unknown blocks may exist. */
static bool is_cuda_in_use(void) {
  int (*count)(int *) = (int (*)(int *))mt_driver_symbol("cuDeviceGetCount");
  int devices;
  return count && count(&devices) != CUDA_ERROR_NOT_INITIALIZED;
}

#define MT_TICKS 100u /* USER_HZ of /proc, 100 on all supported machines */

static const char *started; /* NULL: the library was preloaded */
static uint64_t held;
static bool rebind_failed; /* the system does not let words of loaded objects be changed */

/* Nanoseconds since the process began, 0 where that is unknown. */
static uint64_t age(void) {
  char text[1024];
  struct timespec now;
  if (mt_sys_read_file("/proc/self/stat", text, sizeof text) <= 0) return 0;
  const char *at = strrchr(text, ')');
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  if (!at) return 0;
  uint64_t began = (uint64_t)strtoul(at + 1, NULL, 10) * (1000000000u / MT_TICKS);
  mt_sys_clock(CLOCK_BOOTTIME, &now);
  uint64_t so_far = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  return so_far > began ? so_far - began : 0;
}

void mt_start_note(void) {
  char digits[24];
  if (!started) return;
  mt_dict_info("start", started, strlen(started));
  char *end = mt_put_number(digits, age());
  mt_dict_info("start.after_ns", digits, (size_t)(end - digits));
}

uint64_t mt_start_held(void) { return held; }

uint64_t mt_start_paused_ns(void) { return mt_snapshot_paused_ns(); }

const char *mt_start_mode(void) { return started; }

MT_EXPORT uint64_t memtrace_held(void);
MT_EXPORT uint64_t memtrace_held(void) { return held; }

static void rebind(void) {
  if (is_preloaded() || mt_route_rebind()) return;
  rebind_failed = true;
  mt_log(MT_LOG_ERROR, "some libraries are not recorded, for the system does not let memory protection be changed: ",
         strerrordesc_np ? strerrordesc_np(errno) : "", "");
}

static void rebind_used(void) {
  rebind();
  if (!is_preloaded()) mt_route_replace();
}

static void record_held(void (*recorded)(void)) { held = mt_snapshot_record(recorded); }

MT_EXPORT int memtrace_start(void) {
  bool asleep = mt_recorder_asleep();
  if (!asleep && !memtrace_active()) return MEMTRACE_ERR_OFF;
  if (!asleep && (started || is_preloaded())) return MEMTRACE_OK;
  int error = errno, result = MEMTRACE_OK;
  if (is_cuda_in_use()) {
    started = "late";
    result = mt_recorder_start(rebind_used, record_held) ? MEMTRACE_LATE
             : mt_recorder_is_off()               ? MEMTRACE_ERR_OFF
                                                  : MEMTRACE_OK;
  } else {
    started = "early";
    rebind();
    mt_recorder_wake();
  }
  errno = error;
  return rebind_failed ? MEMTRACE_ERR_SYSTEM : result;
}
