#define _GNU_SOURCE
#include "device/sampler.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/forklock.h"
#include "base/sys.h"
#include "base/thread.h"
#include "device/sample.h"
#include "hooks/context.h"
#include "hooks/original.h"
#include "spool/dict.h"
#include "spool/region.h"

/* Reading the processes' shares holds a lock of the driver for milliseconds and stalls kernel launches meanwhile: so it
 * is rare. Maxima are worth it when they grew by a tenth, of which even a device that fills up from nothing has only
 * dozens. */
#define MT_SHARE_INTERVAL_NS 10000000000ull
#define MT_PEAK_GROWTH 10u /* one part in so many */
#define MT_OOM_INTERVAL_NS 1000000000ull
#define MT_SETTLE_NS 20000000ull /* first wait for a quieter moment after a context came; doubled each time */
#define MT_SETTLE_TRIES 6u
#define MT_REFUSALS 3u
#define MT_END_WAIT_MS 200u
#define MT_DEVICES 64
#define MT_INITIAL_PID_NAMESPACE 0xeffffffcull

enum { IDLE, STARTING, SAMPLING, ENDING, ENDED };

static const char *const names[] = {"context", "period", "peak", "oom", "exit"};

static int32_t owner;    /* process whose sampler runs or will; a forked child has none */
static int32_t thread;   /* its thread */
static uint32_t state;   /* futex */

static struct device {
  mt_nvml_device handle;
  bool unknown_to_nvml;
  uint64_t next_share; /* monotonic ns: not before */
  uint64_t top;        /* highest use when shares were last read */
} devices[MT_DEVICES];

static unsigned refusals;

static void note(const char *key, const char *text) { mt_dict_info(key, text, strlen(text)); }

void mt_sampler_disable(const char *why) {
  char text[200] = "off: ";
  strncat(text, why, sizeof text - 6);
  note("nvml", text);
}

/* Waits until a sample is wanted, or until the deadline (monotonic ns, 0: none). */
static void wait_for_work(uint64_t deadline) {
  uint64_t now = mt_clock_monotonic();
  if (deadline && deadline <= now) return;
  __atomic_store_n(&mt_sampler_sleeping, 1, __ATOMIC_SEQ_CST);
  mt_sys_futex_wait(&mt_sampler_wanted, 0, deadline ? deadline - now : 0);
  __atomic_store_n(&mt_sampler_sleeping, 0, __ATOMIC_SEQ_CST);
}

static bool find_device(struct device *d, int ordinal) {
  if (d->handle || d->unknown_to_nvml) return d->handle != NULL;
  int (*get)(int *, int) = mt_driver_symbol("cuDeviceGet");
  int (*get_uuid)(void *, int) = mt_driver_symbol("cuDeviceGetUuid_v2"); /* names the slice, where the device is one */
  if (!get_uuid) get_uuid = mt_driver_symbol("cuDeviceGetUuid");
  uint8_t uuid[16];
  int device;
  bool slice = false;
  if (get && get_uuid && !get(&device, ordinal) && !get_uuid(uuid, device)) d->handle = mt_nvml_find(uuid, &slice);
  if (slice && d->handle) note("nvml.slice", "the device is a slice of a GPU (MIG): all figures are the slice's");
  if (!d->handle) {
    d->unknown_to_nvml = true;
    note("nvml.device", "the management library does not know a device of the program's");
  }
  return d->handle != NULL;
}

/* A round of samples: one of each device that has a context. */
struct round {
  enum mt_occasion occasion;
  bool will_retry;
  bool unsettled; /* one of them was, and wrote no record */
  bool finish;
};

static void take_sample(struct round *round, struct device *d, int ordinal, bool share) {
  struct mt_sample want = {.device = d->handle,
                           .ordinal = ordinal, .occasion = names[round->occasion], .share = share,
                           .will_retry = round->will_retry};
  uint64_t used = 0;
  switch (mt_sample_take(&want, &used)) {
    case MT_READING_SETTLED: case MT_READING_LOST: break;
    case MT_READING_UNSETTLED: round->unsettled = true; break;
    case MT_READING_REFUSED: refusals++; return;
    case MT_READING_OVER: round->finish = true; return;
  }
  refusals = 0;
  if (!share) return;
  d->next_share = mt_clock_monotonic() + MT_SHARE_INTERVAL_NS;
  if (used > d->top) d->top = used;
}

/* A device that has a context is never empty: the answers are not about this device. */
static void note_idle(void) {
  static bool noted;
  if (!noted) note("nvml.device", "the device says that nothing is in use, though the program uses it");
  noted = true;
}

static void sample_device(int ordinal, void *argument) {
  struct round *round = argument;
  struct device *d = &devices[ordinal];
  struct mt_nvml_memory memory = {0};
  if (round->finish || !find_device(d, ordinal)) return;
  if (mt_nvml_memory(d->handle, &memory) && !memory.used) return note_idle();
  bool share = round->occasion != MT_OCCASION_PERIOD || mt_clock_monotonic() >= d->next_share;
  enum mt_occasion occasion = round->occasion;
  if (!share && memory.used > d->top + d->top / MT_PEAK_GROWTH) {
    share = true;
    round->occasion = MT_OCCASION_PEAK;
  }
  take_sample(round, d, ordinal, share);
  round->occasion = occasion;
}

/* False when there is nothing more to wait for. */
static bool sample(struct round *round) {
  if (mt_recorder_is_off()) return false;
  mt_forklock_acquire();
  mt_context_devices(sample_device, round);
  bool refused = refusals >= MT_REFUSALS;
  if (refused) mt_nvml_close();
  mt_forklock_release();
  if (refused) note("nvml", "stopped: the management library answers no more");
  return !refused && !round->finish;
}

static void wait_while(uint32_t value) {
  uint64_t give_up = mt_clock_monotonic() + MT_END_WAIT_MS * 1000000ull;
  while (__atomic_load_n(&state, __ATOMIC_SEQ_CST) == value && mt_clock_monotonic() < give_up)
    mt_sys_futex_wait(&state, value, 20000000);
}

/* When the process ends by exit(), before the driver's own handlers and the destructors of all libraries: one of them
 * unmapped what the management library, which was just being opened, came to by way of fstat. */
static void at_exit(void) {
  if (__atomic_load_n(&owner, __ATOMIC_ACQUIRE) == mt_sys_getpid()) wait_while(STARTING);
  mt_sampler_end();
}

void mt_sampler_prepare(void) {
  if (atexit(at_exit)) return note("nvml.exit", "no sample at the end: no handler could be registered");
  __atomic_store_n(&owner, mt_sys_getpid(), __ATOMIC_RELEASE);
}

static const char *start(void) {
  uint32_t idle = IDLE;
  if (!mt_config.nvml_seconds) return "MEMTRACE_NVML=0";
  if (!mt_forklock_init()) return "no fork handlers";
  __atomic_store_n(&thread, mt_sys_gettid(), __ATOMIC_RELAXED);
  if (!__atomic_compare_exchange_n(&state, &idle, STARTING, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    return "the process ended before it began";
  mt_forklock_acquire();
  const char *why = mt_nvml_open();
  mt_forklock_release();
  __atomic_store_n(&state, why ? ENDED : SAMPLING, __ATOMIC_SEQ_CST);
  mt_sys_futex_wake(&state, INT32_MAX);
  if (why) return why;
  note("nvml", "on");
  if (mt_header()->pid_namespace != MT_INITIAL_PID_NAMESPACE)
    note("nvml.list", "the process runs in a container: processes outside it may be missing from the device's list");
  return NULL;
}

/* No more samples will be taken: waiters may go on. */
static void finish(void) {
  __atomic_store_n(&state, ENDED, __ATOMIC_SEQ_CST);
  mt_sys_futex_wake(&state, INT32_MAX);
}

static void take_last(void) {
  struct round round = {.occasion = MT_OCCASION_EXIT};
  sample(&round);
  finish();
}

/* What is due, in monotonic ns; 0 never. */
struct plan {
  uint64_t period, settle, next_oom;
  unsigned settle_tries;
};

static void await_settling(struct plan *plan, bool unsettled) {
  plan->settle = unsettled ? mt_clock_monotonic() + (MT_SETTLE_NS << plan->settle_tries) : 0;
  plan->settle_tries = unsettled ? plan->settle_tries + 1 : 0;
}

static bool due(uint64_t when, uint64_t now) { return when && now >= when; }

/* One turn: at most one round. False at the end of all sampling. */
static bool run_due_round(struct plan *plan, uint32_t bits) {
  uint64_t now = mt_clock_monotonic();
  struct round round = {.occasion = MT_OCCASION_NONE};
  if (bits & 1u << MT_OCCASION_OOM && now >= plan->next_oom) {
    round.occasion = MT_OCCASION_OOM;
    plan->next_oom = now + MT_OOM_INTERVAL_NS;
  } else if (bits & 1u << MT_OCCASION_CONTEXT || due(plan->settle, now)) {
    round.occasion = MT_OCCASION_CONTEXT;
    round.will_retry = plan->settle_tries + 1 < MT_SETTLE_TRIES;
  } else if (due(plan->period, now))
    round.occasion = MT_OCCASION_PERIOD;
  else
    return true;
  bool more = sample(&round);
  if (round.occasion == MT_OCCASION_CONTEXT) await_settling(plan, round.will_retry && round.unsettled);
  plan->period = mt_clock_monotonic() + mt_config.nvml_seconds * 1000000000ull;
  return more;
}

static uint64_t earlier(uint64_t a, uint64_t b) { return !a || (b && b < a) ? b : a; }

void mt_sampler_run(const uint32_t *until, void (*each_round)(void)) {
  const char *why = start();
  struct plan plan = {.period = mt_clock_monotonic()};
  bool sampling = !why;
  if (why) mt_sampler_disable(why);
  while (!__atomic_load_n(until, __ATOMIC_ACQUIRE)) {
    each_round();
    uint32_t bits = __atomic_exchange_n(&mt_sampler_wanted, 0, __ATOMIC_SEQ_CST);
    if (sampling && __atomic_load_n(&state, __ATOMIC_SEQ_CST) == ENDING) {
      take_last();
      sampling = false;
    }
    if (sampling && !run_due_round(&plan, bits)) {
      finish();
      sampling = false;
    }
    wait_for_work(sampling ? earlier(plan.period, plan.settle) : 0);
  }
  if (sampling && __atomic_load_n(&state, __ATOMIC_SEQ_CST) != ENDED) take_last();
}

static void wait_for_last(void) {
  mt_wake_sampler(MT_OCCASION_EXIT);
  wait_while(ENDING);
}

/* What NVML has open is left to the kernel: giving it back could only go wrong while the process comes apart. */
void mt_sampler_end(void) {
  uint32_t idle = IDLE, running = SAMPLING;
  if (__atomic_load_n(&owner, __ATOMIC_ACQUIRE) != mt_sys_getpid() ||
      __atomic_load_n(&thread, __ATOMIC_RELAXED) == mt_sys_gettid())
    return;
  int error = errno;
  __atomic_compare_exchange_n(&state, &idle, ENDED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  if (__atomic_compare_exchange_n(&state, &running, ENDING, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
      running == ENDING)
    wait_for_last();
  errno = error;
}
