#define _GNU_SOURCE
#include "base/thread.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atload.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/sys.h"

__thread struct mt_thread *mt_self __attribute__((tls_model("initial-exec")));

static struct mt_epoch_page not_started;
struct mt_epoch_page *mt_epoch_page = &not_started;

uint64_t mt_recorder_state;
uint64_t mt_last_epoch;
static uint64_t free_threads; /* tag << 48 | address: a stack of recycled mt_thread blocks */
static struct mt_thread *all_threads; /* every block that was ever made */
static pthread_key_t thread_end;
static bool thread_end_created;

uint64_t mt_recorder_state_in(enum mt_phase phase) { return (uint64_t)(uint32_t)mt_sys_getpid() << 32 | phase; }

void mt_recorder_set_phase(enum mt_phase phase) {
  __atomic_store_n(&mt_recorder_state, mt_recorder_state_in(phase), __ATOMIC_RELEASE);
}

enum { BYPASS_ON = 1, BYPASS_EVENT = 2 };
static uint64_t bypassed; /* bypassed events, above the bit that lets them */

void mt_bypass_begin(void) { __atomic_fetch_or(&bypassed, BYPASS_ON, __ATOMIC_SEQ_CST); }

uint64_t mt_bypass_count(void) { return __atomic_load_n(&bypassed, __ATOMIC_SEQ_CST); }

bool mt_bypass_end_unless_passed(uint64_t count) {
  return __atomic_compare_exchange_n(&bypassed, &count, count & ~(uint64_t)BYPASS_ON, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

void mt_bypass_end(void) { __atomic_fetch_and(&bypassed, ~(uint64_t)BYPASS_ON, __ATOMIC_SEQ_CST); }

bool mt_bypass_event(void) { return __atomic_fetch_add(&bypassed, BYPASS_EVENT, __ATOMIC_SEQ_CST) & BYPASS_ON; }

static void (*end_listener)(struct mt_thread *self) MT_AT_LOAD;

void mt_thread_on_end(void (*listener)(struct mt_thread *self)) { end_listener = listener; }

/* Recycles a thread's block when the thread ends. A hook that runs in a later destructor attaches anew, and this runs
 * again. */
static void on_thread_end(void *block) {
  struct mt_thread *self = block;
  if (end_listener) end_listener(self);
  self->epoch = MT_EPOCH_NONE;
  mt_self = NULL;
  uint64_t head = __atomic_load_n(&free_threads, __ATOMIC_RELAXED), want;
  do {
    __atomic_store_n(&self->free_next, (struct mt_thread *)(head & 0xffffffffffffull), __ATOMIC_RELAXED);
    want = ((head >> 48) + 1) << 48 | (uint64_t)self;
  } while (!__atomic_compare_exchange_n(&free_threads, &head, want, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

static struct mt_thread *new_block(void) {
  uint64_t head = __atomic_load_n(&free_threads, __ATOMIC_ACQUIRE);
  while (head & 0xffffffffffffull) { /* blocks are never unmapped, so reading free_next of a lost race is safe */
    struct mt_thread *block = (struct mt_thread *)(head & 0xffffffffffffull);
    uint64_t want = ((head >> 48) + 1) << 48 | (uint64_t)__atomic_load_n(&block->free_next, __ATOMIC_RELAXED);
    if (__atomic_compare_exchange_n(&free_threads, &head, want, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      memset(block, 0, offsetof(struct mt_thread, free_next));
      return block;
    }
  }
  struct mt_thread *fresh = mt_sys_pages_alloc(sizeof *fresh);
  if (!fresh) return NULL;
  fresh->all_next = __atomic_load_n(&all_threads, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&all_threads, &fresh->all_next, fresh, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    continue;
  return fresh;
}

/* Still in the capture that it was in when it had ended so many: a later one has seen what was stored before. Native
 * stacks are waited for as well: microseconds. */
static bool is_capturing(const struct mt_thread *thread, uint64_t epoch, uint32_t before) {
  return __atomic_load_n(&thread->capturing, __ATOMIC_ACQUIRE) &&
         __atomic_load_n(&thread->captured, __ATOMIC_RELAXED) == before &&
         __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) == epoch;
}

/* A forked child inherits blocks of threads that it does not have: they have another epoch, or it does not record. */
void mt_threads_wait_for_captures(unsigned limit_ms) {
  uint64_t epoch = __atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE) >> 32 == (uint32_t)mt_sys_getpid()
                       ? __atomic_load_n(&mt_last_epoch, __ATOMIC_RELAXED)
                       : 0;
  uint64_t give_up = mt_clock_monotonic() + limit_ms * 1000000ull;
  if (!epoch) return;
  for (struct mt_thread *thread = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE); thread; thread = thread->all_next) {
    if (thread == mt_self) continue;
    uint32_t before = __atomic_load_n(&thread->captured, __ATOMIC_ACQUIRE);
    while (is_capturing(thread, epoch, before) && mt_clock_monotonic() < give_up)
      mt_sys_sleep(50000); /* the thread may need this very processor */
  }
}

/* The word that every event checks: on a page that the kernel wipes in children. */
bool mt_epoch_page_create(void) {
  if (mt_epoch_page != &not_started) return true;
  void *page = mt_sys_pages_alloc(MT_PAGE);
  if (!page) return false;
  if (mt_sys_madvise(page, MT_PAGE, MADV_WIPEONFORK)) {
    mt_sys_pages_free(page, MT_PAGE);
    return false;
  }
  __atomic_store_n(&mt_epoch_page, page, __ATOMIC_RELEASE);
  return true;
}

bool mt_epoch_page_missing(void) { return mt_epoch_page == &not_started; }

static void create_thread_end(void) { thread_end_created = !pthread_key_create(&thread_end, on_thread_end); }

struct mt_thread *mt_thread_create(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (mt_config.disabled || mt_recorder_is_off()) return NULL;
  pthread_once(&once, create_thread_end);
  struct mt_thread *self = new_block();
  if (!self) return NULL;
  self->epoch = MT_EPOCH_NONE;
  if (thread_end_created) pthread_setspecific(thread_end, self);
  return mt_self = self;
}

struct mt_thread *mt_thread_recording_now(void) {
  if (!__atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_RELAXED)) return NULL;
  return mt_thread_get();
}

/* An epoch on the MADV_WIPEONFORK page means that this very process records: no getpid needed. */
static bool has_epoch(void) { return __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE); }

bool mt_recorder_in_child(void) {
  if (has_epoch()) return false;
  uint64_t now = __atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE);
  return (uint32_t)now != MT_IDLE && now >> 32 != (uint32_t)mt_sys_getpid();
}

bool mt_recorder_asleep(void) { return (uint32_t)__atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE) == MT_ASLEEP; }

bool mt_recorder_has_spool(void) {
  if (has_epoch()) return true;
  uint64_t now = __atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE);
  return now == mt_recorder_state_in(MT_READY) || now == mt_recorder_state_in(MT_ENDED);
}
