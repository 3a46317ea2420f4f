#define _GNU_SOURCE
/* A program that sets itself a limit on address space or data, while a recording goes on, counts on what it has taken
 * itself: allocations that succeed without the library must succeed with it. So the limit is seen coming. What the Go
 * runtime has reserved and does not use is given back before, and the limit is set higher by what the recorder holds
 * then; the program reads back what it has set. A limit that comes another way (a system call of the program's own,
 * another process) finds the recorder as it is: the program's allocations may then fail earlier, and the Go half may
 * end (goend.h). */
#include "process/limit.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/atload.h"
#include "base/clock.h"
#include "base/sys.h"
#include "elf/loaded.h"
#include "hooks/original.h"
#include "process/boot.h"
#include "process/gomemory.h"
#include "process/recorder.h"
#include "spool/region.h"

/* How long a runtime that is just starting is waited for: it would take more afterwards. */
#define MT_LIMIT_WAIT_MS 500u
/* What cannot be counted: stacks of the library's threads and the address space of an arena of the C library; and room
 * for growth of the Go half's heap. */
#define MT_LIMIT_SPACE (96ull << 20)
#define MT_LIMIT_DATA (24ull << 20)

typedef int (*set_function)(int resource, const struct rlimit *limit);
typedef int (*get_function)(int resource, struct rlimit *limit);
typedef int (*prctl_function)(int option, ...);
typedef int (*prlimit_function)(pid_t process, int resource, const struct rlimit *limit, struct rlimit *old);

static set_function next_set MT_AT_LOAD;
static get_function next_get MT_AT_LOAD;
static prlimit_function next_prlimit MT_AT_LOAD;
static prctl_function next_prctl MT_AT_LOAD;

/* The limit that the program has set, and the actual one. */
static struct shift {
  struct rlimit requested, actual;
  bool active;
} space, data;
static uint32_t locked;

void mt_limit_prepare(void) {
  next_set = (set_function)mt_original_dlsym(RTLD_NEXT, "setrlimit");
  next_get = (get_function)mt_original_dlsym(RTLD_NEXT, "getrlimit");
  next_prlimit = (prlimit_function)mt_original_dlsym(RTLD_NEXT, "prlimit");
  next_prctl = (prctl_function)mt_original_dlsym(RTLD_NEXT, "prctl");
}

static int next_or_prlimit(pid_t process, int resource, const struct rlimit *limit, struct rlimit *old) {
  return next_prlimit ? next_prlimit(process, resource, limit, old)
                   : (int)mt_sys(SYS_prlimit64, process, resource, limit, old);
}

static int call_set(int resource, const struct rlimit *limit) {
  return next_set ? next_set(resource, limit) : next_or_prlimit(0, resource, limit, NULL);
}
static int call_get(int resource, struct rlimit *limit) {
  return next_get ? next_get(resource, limit) : next_or_prlimit(0, resource, NULL, limit);
}

static struct shift *shift_of(int resource) {
  return resource == RLIMIT_AS ? &space : resource == RLIMIT_DATA ? &data : NULL;
}

/* Below what there would have been no drainer from the start. */
static bool is_tight(int resource, const struct rlimit *limit) {
  return limit->rlim_cur < (resource == RLIMIT_AS ? MT_GO_ADDRESS_SPACE : MT_GO_DATA);
}

static uint64_t held(int resource) {
  uint64_t bytes = mt_sys_pages_total() + mt_go_memory_held() + mt_loaded_own(resource == RLIMIT_AS);
  return resource == RLIMIT_AS
             ? /* the drainer has the spool mapped as well */ bytes + 2 * mt_region.size + MT_LIMIT_SPACE
             : bytes + MT_LIMIT_DATA;
}

static rlim_t raised(rlim_t limit, uint64_t by) {
  return limit == RLIM_INFINITY || limit > RLIM_INFINITY - 1 - by ? limit : limit + by;
}

static bool limits_equal(const struct rlimit *a, const struct rlimit *b) {
  return a->rlim_cur == b->rlim_cur && a->rlim_max == b->rlim_max;
}

/* The limit that the program would read. If it was changed elsewhere since, the shift has ended. */
static void hide_shift(struct shift *s, struct rlimit *limit) {
  if (s->active && limits_equal(limit, &s->actual)) *limit = s->requested;
  else s->active = false;
}

static int set(struct shift *s, int resource, const struct rlimit *limit) {
  struct rlimit before, requested;
  if (call_get(resource, &before)) return -1;
  requested = before;
  hide_shift(s, &requested);
  if (!is_tight(resource, limit) && !s->active) return call_set(resource, limit);
  if (mt_recorder_has_spool()) { /* and not only the process that it was forked from */
    mt_boot_wait(MT_LIMIT_WAIT_MS);
    if (resource == RLIMIT_AS) mt_go_release_memory();
  }
  uint64_t by = held(resource);
  struct rlimit actual = {raised(limit->rlim_cur, by), raised(limit->rlim_max, by)};
  if (limit->rlim_cur > limit->rlim_max) return call_set(resource, limit); /* the kernel refuses it */
  if (limit->rlim_max > requested.rlim_max) { /* and of a hard limit that is not lowered */
    if (actual.rlim_max <= before.rlim_max) actual.rlim_max = raised(before.rlim_max, 1);
  } else if (actual.rlim_max > before.rlim_max) actual.rlim_max = before.rlim_max;
  if (actual.rlim_cur > actual.rlim_max) actual.rlim_cur = actual.rlim_max;
  int result = call_set(resource, &actual);
  if (!result) *s = (struct shift){*limit, actual, true};
  return result;
}

/* A child that was forked by another thread in the middle of this goes without. */
static bool lock(void) {
  for (unsigned tries = 0; __atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE); tries++) {
    if (tries == 10000) return false;
    mt_sys_yield();
  }
  return true;
}

static void unlock(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }

int mt_limit_set(int resource, const struct rlimit *limit) {
  struct shift *s = shift_of(resource);
  if (!s || !limit || (!s->active && (!is_tight(resource, limit) || !mt_recorder_has_spool())) || !lock())
    return call_set(resource, limit);
  int error = errno, result = set(s, resource, limit);
  if (!result) errno = error;
  unlock();
  return result;
}

int mt_limit_get(int resource, struct rlimit *limit) {
  struct shift *s = shift_of(resource);
  int result = call_get(resource, limit);
  if (!result && s && s->active) hide_shift(s, limit);
  return result;
}

int mt_limit_prlimit(pid_t process, int resource, const struct rlimit *limit, struct rlimit *old) {
  struct shift *s = process && process != mt_sys_getpid() ? NULL : shift_of(resource);
  if (!s || (!s->active && !(limit && is_tight(resource, limit) && mt_recorder_has_spool())))
    return next_or_prlimit(process, resource, limit, old);
  struct rlimit before;
  if (mt_limit_get(resource, &before) || (limit && mt_limit_set(resource, limit))) return -1;
  if (old) *old = before;
  return 0;
}

int mt_limit_prctl(int option, const unsigned long arguments[4]) {
  const unsigned long *a = arguments;
  if (option == PR_SET_TSC && a[0] == PR_TSC_SIGSEGV) mt_clock_disable_tsc(); /* before it holds */
  return next_prctl ? next_prctl(option, a[0], a[1], a[2], a[3])
                    : (int)mt_sys(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}
