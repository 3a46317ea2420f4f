#define _GNU_SOURCE
/* A thread of its own waits for the interpreter's lock. The requester gives up when its time is over; then the thread
 * does nothing once it gets the lock. Until then it serves the next request.
 *
 *   IDLE -> PREPARES -> REQUESTED -> RUNS -> DONE -> IDLE
 *                           |         '--> LATE -> IDLE     the result is not wanted any more
 *                           '--> IDLE                       nor the search
 *
 * For a request that nobody waits for, the thread writes the result. That one runs on the interpreter's main thread
 * rather, between two instructions of the program: what the search refers to lives until its end, so that a program
 * that went on meanwhile would need more memory than without it. A thread of its own is for where the main thread does
 * not come to it, or has handlers for signals, which would run in the search. */
#include "process/search.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "adapters/backward.h"
#include "allocator/growth.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/forklock.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/thread.h"
#include "base/wake.h"
#include "process/boot.h"
#include "python/interpreter.h"
#include "spool/dict.h"
#include "spool/region.h"

#define MT_STACK (8u << 20)    /* finalizers of the program's may run on it */
#define MT_ROOM (1u << 20)     /* of the answer */
#define MT_WALK_MS 10000u      /* for visiting objects */
#define MT_PASS_MS 2000u       /* for the end of a backward pass */
#define MT_VISITS 200000000u   /* of references between them, at most */
#define MT_SEARCH_MS 45000u    /* until the result is not wanted any more: a pass over a large heap cannot be cut
                                  short */

enum { IDLE, PREPARES, REQUESTED, RUNS, DONE, LATE };

static uint32_t state;
static bool has_thread; /* that waits for the lock */
static int32_t runs_on; /* thread, where it is one of these */
static uint64_t runs_since;
static int32_t requested_in; /* pid: a forked child does not have the thread */
static char *text;
static struct mt_referrers request;
static bool unattended; /* nobody waits for it */
enum { NO_CALL, CALL_WANTED, CALL_AWAITED };
static uint32_t call; /* of the interpreter's main thread, for such a search */
static const char *failure;

static void write_result(const char *key, const char *occasion, const struct mt_referrers *found, uint64_t began);

static bool transition(uint32_t from, uint32_t to) {
  bool turned = __atomic_compare_exchange_n(&state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
  if (turned) mt_sys_futex_wake(&state, 1);
  return turned;
}

/* Whether the requester still waits; else the thread has nothing to do. Whoever requests a search after this has a
 * thread made. */
static bool start_if_wanted(void) {
  __atomic_store_n(&has_thread, false, __ATOMIC_SEQ_CST);
  if (!transition(REQUESTED, RUNS)) return false;
  runs_since = mt_clock_monotonic();
  __atomic_store_n(&runs_on, mt_sys_gettid(), __ATOMIC_RELEASE);
  return true;
}

static uint64_t allocated_then; /* when the search that nobody waits for was requested */

/* Otherwise the program has let go of what grew, such as at its end, before the thread got the lock. */
static bool still_has_it(void) { return mt_growth_allocated() >= allocated_then - allocated_then / 4; }

static bool start_between(void) {
  if (!start_if_wanted()) return false;
  request.pass_ms = 0, request.raises = true;
  return true;
}

/* Whether there is an exception of Ctrl-C afterwards. */
static bool search(bool (*begin)(void)) {
  const char *why = mt_referrers_find(&request, begin);
  if (__atomic_load_n(&runs_on, __ATOMIC_ACQUIRE) != mt_sys_gettid()) return false; /* not wanted */
  bool raised = request.raised;
  __atomic_store_n(&runs_on, 0, __ATOMIC_RELEASE);
  failure = why;
  if (!transition(RUNS, DONE)) {
    transition(LATE, IDLE);
  } else if (unattended) {
    if (!why && still_has_it()) write_result("referrers.growing", "growth", &request, runs_since);
    mt_search_over();
  }
  return raised;
}

static void *thread(void *unused) {
  (void)unused;
  mt_sys(SYS_prctl, PR_SET_NAME, MT_THREAD_NAME);
  search(start_if_wanted);
  return NULL;
}

/* Waits while the state is that, until the time is over. */
static void wait_while(uint32_t now, uint32_t milliseconds) {
  uint64_t over = mt_clock_monotonic() + milliseconds * 1000000ull;
  for (uint64_t at; __atomic_load_n(&state, __ATOMIC_ACQUIRE) == now && (at = mt_clock_monotonic()) < over;)
    mt_sys_futex_wait(&state, now, over - at);
}

/* Then the state is PREPARES. */
static const char *prepare(const struct mt_referrers *wanted) {
  if (requested_in != mt_sys_getpid())
    state = IDLE, has_thread = false, call = NO_CALL, requested_in = mt_sys_getpid();
  if (!transition(IDLE, PREPARES)) return "an earlier search is still under way there: try again in a while";
  if (!text && !(text = mt_sys_pages_alloc(MT_ROOM))) {
    transition(PREPARES, IDLE);
    return "there is no memory for the answer";
  }
  request = *wanted;
  request.text = text;
  if (!request.room) request.room = MT_ROOM, request.visits = MT_VISITS, request.milliseconds = MT_WALK_MS;
  return NULL;
}

static const char *make_thread(void) {
  if (__atomic_exchange_n(&has_thread, true, __ATOMIC_SEQ_CST) || mt_boot_thread(thread, MT_STACK)) return NULL;
  __atomic_store_n(&has_thread, false, __ATOMIC_SEQ_CST);
  transition(REQUESTED, IDLE);
  return "no thread can be had there";
}

static const char *request_search(const struct mt_referrers *wanted, bool nobody_waits) {
  const char *why = prepare(wanted);
  if (why) return why;
  unattended = nobody_waits;
  transition(PREPARES, REQUESTED);
  return nobody_waits ? NULL : make_thread();
}

/* What nobody waits for gives way to what somebody does. */
static void displace(uint32_t milliseconds) {
  if (!unattended) return;
  transition(REQUESTED, IDLE);
  wait_while(RUNS, milliseconds);
  wait_while(DONE, milliseconds); /* its result is written */
}

static bool always(void) { return true; }

static void displace_own(void) { displace(mt_config.referrers_ms); }

/* On the calling thread, which has the interpreter's lock. */
static const char *search_here(struct mt_referrers *wanted) {
  if (unattended) mt_referrers_unlocked(displace_own);
  const char *why = prepare(wanted);
  if (why) return why;
  unattended = false;
  transition(PREPARES, RUNS);
  why = mt_referrers_find(&request, always);
  *wanted = request;
  transition(RUNS, DONE);
  if (why) mt_search_over();
  return why;
}

/* Waits for the lock and then for the search. */
static const char *wait_for(struct mt_referrers *answer, uint32_t lock_ms, uint32_t search_ms, const char *busy) {
  wait_while(REQUESTED, lock_ms);
  if (transition(REQUESTED, IDLE)) return busy;
  wait_while(RUNS, search_ms);
  if (transition(RUNS, LATE))
    return "the search takes too long: the program has too many objects or does not let other threads run, or the "
           "machine is busy";
  const char *why = failure;
  *answer = request;
  if (why) mt_search_over();
  return why;
}

const char *mt_search(struct mt_referrers *answer, uint32_t wait_ms) {
  displace(wait_ms);
  answer->pass_ms = MT_PASS_MS;
  const char *why = request_search(answer, false);
  return why ? why
             : wait_for(answer, wait_ms, MT_SEARCH_MS,
                        "its interpreter is busy: the program kept it from other threads the whole time; try again, or "
                        "with a longer --timeout");
}

void mt_search_over(void) {
  mt_sys_pages_free(text, MT_ROOM);
  text = NULL;
  transition(DONE, IDLE);
}

/* For memtrace.referrers() of the Python package: writes the answer's lines to text, and returns how long they are; 0
 * where there are none. With the interpreter's lock. */
MT_EXPORT size_t memtrace_referrers(uint32_t rows, char *to, size_t room);
MT_EXPORT size_t memtrace_referrers(uint32_t rows, char *to, size_t room) {
  int error = errno;
  size_t size = 0;
  struct mt_referrers found = {.limit = rows, .raises = true};
  if (!search_here(&found)) {
    size = found.size <= room ? found.size : 0;
    memcpy(to, found.text, size);
    mt_search_over();
  }
  errno = error;
  return size;
}

/* The bounds of an automatic search, beside its time. */
#define MT_OWN_ROWS 64u
#define MT_OWN_ROOM (32u << 10)
#define MT_OWN_VISITS 20000000u

/* Three fifths of the time are for searching: the result must be written within it. */
static struct mt_referrers own_bounds(void) {
  return (struct mt_referrers){.limit = MT_OWN_ROWS,
                               .visits = MT_OWN_VISITS,
                               .milliseconds = mt_config.referrers_ms * 3 / 5,
                               .room = MT_OWN_ROOM,
                               .brief = true};
}

/* True for the first search of this recording. */
static bool is_first(void) {
  static uint64_t searched_in;
  uint64_t epoch = __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE);
  return epoch && mt_config.referrers_ms && __atomic_exchange_n(&searched_in, epoch, __ATOMIC_ACQ_REL) != epoch;
}

/* occasion TAB nanoseconds TAB bytes that PyTorch's allocator had given out, then the answer's lines. */
static void write_result(const char *key, const char *occasion, const struct mt_referrers *found, uint64_t began) {
  static char lines[MT_OWN_ROOM + 96];
  char *at = mt_put_number(stpcpy(stpcpy(lines, occasion), "\t"), mt_clock_monotonic() - began);
  *at++ = '\t';
  at = mt_put_number(at, mt_growth_allocated());
  *at++ = '\n';
  memcpy(at, found->text, found->size);
  mt_dict_info(key, lines, (size_t)(at - lines) + found->size);
}

static void write_first(const char *occasion, const struct mt_referrers *found, uint64_t began, const char *why) {
  if (why) return mt_dict_info("referrers.skipped", why, strlen(why));
  write_result("referrers", occasion, found, began);
  mt_search_over();
}

static int32_t announced_by; /* thread */

void mt_search_announce(void) {
  if (mt_interpreter_state() < MT_PY_CHECKED || !is_first()) return;
  int error = errno;
  mt_dict_info("referrers.begun", "1", 1);
  __atomic_store_n(&announced_by, mt_sys_gettid(), __ATOMIC_RELEASE);
  errno = error;
}

void mt_search_at_refusal(void) {
  int32_t self = mt_sys_gettid();
  if (!__atomic_compare_exchange_n(&announced_by, &self, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
  int error = errno;
  struct mt_referrers found = own_bounds();
  found.own_passes = mt_backward_runs(mt_thread_get());
  uint64_t began = mt_clock_monotonic(), before = mt_sys_block(MT_SYS_ALL_SIGNALS);
  const char *why = mt_referrers_unsafe();
  if (!why) {
    displace(mt_config.referrers_ms / 4);
    why = request_search(&found, false);
  }
  if (!why)
    why = wait_for(&found, mt_config.referrers_ms / 4, mt_config.referrers_ms * 3 / 4,
                   "another thread kept Python's interpreter busy");
  write_first("oom", &found, began, why);
  mt_sys_set_blocked(before);
  errno = error;
}

void mt_search_at_end(void) {
  if (!mt_growth_detected() || !is_first()) return;
  int error = errno;
  struct mt_referrers found = own_bounds();
  uint64_t began = mt_clock_monotonic();
  const char *why = search_here(&found);
  write_first("end", &found, began, why);
  errno = error;
}

/* Whether a call is awaited; then it is not any more. */
static bool take_call(void) {
  uint32_t awaited = CALL_AWAITED;
  return requested_in == mt_sys_getpid() &&
         __atomic_compare_exchange_n(&call, &awaited, NO_CALL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void mt_search_while_growing(void) {
  if (!mt_config.referrers_ms || !__atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE) ||
      mt_interpreter_state() < MT_PY_CHECKED)
    return;
  int error = errno;
  struct mt_referrers wanted = own_bounds();
  uint64_t before = mt_sys_block(MT_SYS_ALL_SIGNALS);
  wanted.goes_on = true;
  wanted.pass_ms = mt_config.referrers_ms;
  allocated_then = mt_growth_allocated();
  if (take_call()) {
    make_thread(); /* the main thread did not come to it while as much was allocated as before in all */
  } else if (!request_search(&wanted, true)) {
    __atomic_store_n(&call, CALL_WANTED, __ATOMIC_RELEASE);
    mt_wake_poll();
  }
  mt_sys_set_blocked(before);
  errno = error;
}

/* A pending call: on the main thread, with the lock. */
static int search_between(void *unused) {
  (void)unused;
  int error = errno;
  bool raised = false;
  if (take_call()) {
    if (mt_referrers_disturbed()) make_thread();
    else raised = search(start_between);
  }
  errno = error;
  return raised ? -1 : 0;
}

void mt_search_poll(void) {
  uint32_t wanted = CALL_WANTED;
  if (__atomic_load_n(&call, __ATOMIC_RELAXED) != CALL_WANTED || requested_in != mt_sys_getpid() ||
      !mt_forklock_init() ||
      !__atomic_compare_exchange_n(&call, &wanted, CALL_AWAITED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return;
  mt_forklock_acquire();
  bool comes = mt_referrers_between(search_between);
  mt_forklock_release();
  if (!comes && take_call()) make_thread();
}
