#define _GNU_SOURCE
#include "spool/overflow.h"

#include <signal.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/sys.h"
#include "spool/region.h"
#include "unwind/unwind.h"

#define MT_WAIT_NS 50000000ull
#define MT_WAIT_SHARE 20u
#define MT_SLICE_NS \
  5000000ull /* between two checks of the total waiting time and of the program's end */

/* How long all threads together may still wait. */
static uint64_t left_for_run(const struct mt_spool_header *h, uint64_t now) {
  uint64_t since = __atomic_load_n(&h->waiting_since, __ATOMIC_RELAXED),
           waited = __atomic_load_n(&h->waited_ns, __ATOMIC_RELAXED);
  if (since && since < now) waited += now - since;
  uint64_t allowed = (now - (uint64_t)h->clock_first.monotonic_ns) / MT_WAIT_SHARE;
  return waited < allowed ? allowed - waited : 0;
}

/* Whether a signal handler's frame is on the stack, or the stack is a signal handler's own. A stack that cannot be
 * walked is taken for one. */
static __attribute__((noinline)) bool in_handler(struct mt_thread *self) {
  const struct mt_frame *frame = __builtin_frame_address(0);
  struct mt_stack_bounds bounds = self->stack;
  enum mt_stack_end end;
  stack_t alternate;
  bool found = false;
  if (self->capturing || mt_sys(SYS_sigaltstack, NULL, &alternate) || alternate.ss_flags & SS_ONSTACK) return true;
  if (!mt_stack_holds(&bounds, frame) && !mt_stack_find((uintptr_t)frame, &bounds)) return true;
  self->capturing = 1;
  unsigned count = mt_unwind(frame, &bounds, self->native, MT_NATIVE_MAX, false, &end);
  for (unsigned i = 0; i < count && !found; i++) found = mt_unwind_is_handler_return(self->native[i]);
  self->capturing = 0;
  return found;
}

static void wake_drainer(struct mt_spool_header *h) {
  __atomic_add_fetch(&h->drain_wake, 1, __ATOMIC_RELEASE);
  mt_sys_futex_wake(&h->drain_wake, 1);
}

bool mt_overflow_begin(struct mt_overflow *wait, struct mt_thread *self) {
  struct mt_spool_header *h = mt_header();
  uint64_t now = mt_clock_monotonic(), none = 0;
  if (mt_config.drop || !mt_draining() || (self->ring && self->ring->inflight) || !left_for_run(h, now)) return false;
  int error = errno;
  bool handler = in_handler(self);
  errno = error;
  if (handler) return false;
  *wait = (struct mt_overflow){.give_up = now + MT_WAIT_NS, .seen = __atomic_load_n(&h->room, __ATOMIC_ACQUIRE)};
  __atomic_add_fetch(&h->waits, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&h->waiting, 1, __ATOMIC_SEQ_CST);
  __atomic_compare_exchange_n(&h->waiting_since, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return true;
}

bool mt_overflow_sleep(struct mt_overflow *wait) {
  struct mt_spool_header *h = mt_header();
  uint64_t now = mt_clock_monotonic(), left = left_for_run(h, now);
  if (now >= wait->give_up || !left || !mt_draining() || mt_recorder_is_off()) return false;
  if (left > wait->give_up - now) left = wait->give_up - now;
  if (left > MT_SLICE_NS) left = MT_SLICE_NS;
  int error = errno;
  wake_drainer(h);
  mt_sys_futex_wait(&h->room, wait->seen, left);
  errno = error;
  wait->seen = __atomic_load_n(&h->room, __ATOMIC_ACQUIRE);
  return true;
}

/* The last one adds up the time. A wait that begins at the same moment is counted from its own end on, which is at most
 * one wait less. */
void mt_overflow_end(void) {
  struct mt_spool_header *h = mt_header();
  if (__atomic_sub_fetch(&h->waiting, 1, __ATOMIC_SEQ_CST)) return;
  uint64_t since = __atomic_exchange_n(&h->waiting_since, 0, __ATOMIC_RELAXED), now = mt_clock_monotonic();
  if (since && since < now) __atomic_add_fetch(&h->waited_ns, now - since, __ATOMIC_RELAXED);
}
