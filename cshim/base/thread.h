/* The recording state of a thread of the program, and whether this process records at all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/stack.h"
#include "spool.h"

#define MT_EXPORT __attribute__((visibility("default")))
#define MT_LIKELY(x) __builtin_expect(!!(x), 1)
#define MT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MT_TAG_DEPTH 64u
#define MT_TAG_UNSTORED_OWNERS 32u
#define MT_WAITS_MAX 32u /* streams of one block: torch makes as many, of each priority */
#define MT_RECENT_BITS 3u
#define MT_RECENT_CALLERS (1u << MT_RECENT_BITS)

/* The thread's tags: the full path as text, and for each level who pushed it, where it ends and which id the path up to
 * it has in the present spool. */
struct mt_tags {
  uint32_t depth;  /* levels that are stored */
  uint32_t beyond; /* levels that found no room: they count, but are not stored */
  uint32_t owner[MT_TAG_DEPTH];
  uint32_t id[MT_TAG_DEPTH];
  uint16_t length[MT_TAG_DEPTH];
  struct {
    uint32_t owner;
    uint32_t count;
  } unstored[MT_TAG_UNSTORED_OWNERS]; /* the levels beyond, by owner; the first entry is the program's own */
  char path[4096];
};

/* Epoch of a thread that does not record: differs from every mt_epoch_page.epoch, also from the 0 before the start and
 * after the end. */
#define MT_EPOCH_NONE UINT64_MAX

/* What one thread of the program needs while it records. Lives in its own mapping, never in TLS, which is carved out of
 * every thread's stack. */
struct mt_thread {
  uint64_t epoch; /* the mt_epoch_page.epoch it belongs to; any other: attach anew */
  struct mt_ring *ring;
  struct mt_record *next; /* next slot to fill */
  struct mt_record *end;  /* one past the segment's last slot */
  struct mt_segment_head *segment;
  struct mt_record *held_end; /* end of a segment whose slots are reserved for records that release memory; then end is
                                 not past next. NULL: none */
  uint32_t busy;          /* a record is being written: an event from a signal handler is dropped and counted */
  uint32_t tag;           /* id of the full tag path, 0 untagged */
  uint16_t runtime;       /* id of the runtime call this thread is inside, 0 none */
  uint16_t driver_events; /* driver allocations recorded since that call began */
  uintptr_t runtime_caller;
  const struct mt_frame *frame;  /* of the outermost hooked call that this thread is inside, or NULL */
  struct mt_stack_bounds stack; /* its own; 0, 0 until it was needed */
  struct mt_stack_memo *memo;     /* of the native stack that was last found, or NULL */
  struct mt_stack_memo *pymemo;   /* of Python's */
  uint32_t walks, pywalks;      /* stacks that were walked, since none was expected or another one was there */
  uint32_t capturing;           /* the stack buffers below are in use: by the code that a signal handler interrupted */
  uint32_t captured;            /* captures that have ended: mt_thread_capture_end */
  struct mt_recent {
    uintptr_t caller;
    uint32_t generation; /* of mt_module_generation, when it was looked up */
    uint32_t stack;      /* the caller as a stack, 0: not interned yet */
    void *real;          /* original of the reporting function that this call site calls, or NULL: not looked up yet */
  } recent[MT_RECENT_CALLERS]; /* callers, by hash: an allocator reports from two or three places in turn */
  uint64_t reserved_seq; /* number drawn by a free for the free below it: the runtime's for the driver's, the driver's
                            for an interposer's */
  uint64_t recorded_addr;    /* of the last driver event */
  uint16_t recorded_count;   /* driver events, in all */
  uint8_t recorded_kind;
  uint64_t op_thread;          /* the framework's number of this thread as operators have it */
  const uint64_t *op_next; /* the framework's variables of this thread (cshim/adapters/backward.h), NULL where a
                              function must be called */
  const uint64_t *op_node;
  const uint64_t *op_records;
  uint32_t op_version; /* one more than mt_backward.changes when those three were filled in, 0: not yet */
  uint32_t op_thread_valid;            /* op_thread is known */
  uint64_t context;            /* the thread's context at the last query */
  uint64_t context_owner;      /* the context that owns what is allocated in that one */
  uint64_t context_generation; /* cshim/hooks/context.c: generation then */
  int32_t context_device;
  uint32_t waits; /* CUDA events that torch's allocator has recorded since the thread's last report, for the block
                     that it is about to report */
  struct {
    uint64_t event, stream;
  } wait[MT_WAITS_MAX]; /* the first of them */
  /* what follows outlives the fields above */
  uint64_t named_in;    /* epoch of the spool that has name */
  uint32_t name;        /* dictionary id of the thread */
  uint64_t ringless_in; /* epoch in which it found no ring */
  struct mt_tags tags;
  struct mt_thread *free_next; /* link of the list of recycled blocks; never cleared: a thread that loses the race for a
                                  block may still read it */
  struct mt_thread *all_next;  /* of the list of all blocks, written once */
  /* room for one stack of each kind, never cleared: on the program's own stack it might not fit */
  uint64_t native[1 + MT_NATIVE_MAX]; /* as the dictionary has it: the end, then the addresses */
  struct mt_pyraw python[MT_PYTHON_MAX];
};

/* One page of its own, wiped by the kernel in every forked child, raw clone() included (MADV_WIPEONFORK, madvise(2)):
 * epoch 0 there sends the first event down the slow path. */
struct mt_epoch_page {
  uint64_t epoch;
};

extern __thread struct mt_thread *mt_self __attribute__((tls_model("initial-exec")));
extern struct mt_epoch_page *mt_epoch_page;

/* Begins a recording if none runs, and attaches the calling thread. The one function of this header that another room
 * defines (process/recorder.c): the first event of a process may come before anything could be registered. */
struct mt_thread *mt_thread_attach(void);

/* Phases of the recorder: IDLE before the first event, OFF and ENDED (off, after READY) when nothing is recorded any
 * more, ASLEEP while recording is to begin on request. */
enum mt_phase { MT_IDLE, MT_STARTING, MT_READY, MT_OFF, MT_ENDED, MT_ASLEEP };

/* pid << 32 | phase. Survives fork on purpose: the pid tells whether the phase is this process's own. One word, or two
 * threads might both start the recording. */
extern uint64_t mt_recorder_state;
extern uint64_t mt_last_epoch; /* of the present recording, or the last one */

/* The value of mt_recorder_state while this process is in a phase. */
uint64_t mt_recorder_state_in(enum mt_phase phase);
void mt_recorder_set_phase(enum mt_phase phase);

/* A recording that begins in a running program first takes a snapshot of live memory. Meanwhile events bypass the
 * recorder, and are counted: a snapshot during which one did may have missed it. end_unless_passed ends the bypass if
 * none did since the given count; from then on events wait for the recording. */
void mt_bypass_begin(void);
uint64_t mt_bypass_count(void);
bool mt_bypass_end_unless_passed(uint64_t count);
/* Ends the bypass in any case. */
void mt_bypass_end(void);
/* For an event while the recording starts: true if it is not to be recorded. */
bool mt_bypass_event(void);

/* Allocates mt_epoch_page with MADV_WIPEONFORK; false with errno on failure. Before the first recording. */
bool mt_epoch_page_create(void);

/* True before mt_epoch_page_create. */
bool mt_epoch_page_missing(void);

/* True in a child, forked from a process that was recording, that does not record itself. */
bool mt_recorder_in_child(void);

/* True when recording is over, since it failed or the process is ending, and while it is to begin later. The cost of an
 * event in a process that does not record is little more than this. */
static inline bool mt_recorder_is_off(void) {
  return (uint32_t)__atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE) >= MT_OFF;
}

/* Returns the calling thread's state, ready to record, or NULL when nothing can be recorded (disabled, failed, after
 * the end). */
static inline struct mt_thread *mt_thread_get(void) {
  struct mt_thread *self = mt_self;
  if (MT_LIKELY(self && self->epoch == __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_RELAXED))) return self;
  return mt_recorder_is_off() ? NULL : mt_thread_attach();
}

/* The same, but in a child of a process that was recording it does not begin a recording: the driver refuses calls in
 * such a child, unless they prove otherwise. */
static inline struct mt_thread *mt_thread_get_lazily(void) {
  struct mt_thread *self = mt_self;
  if (MT_LIKELY(self && self->epoch == __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_RELAXED))) return self;
  return mt_recorder_is_off() || mt_recorder_in_child() ? NULL : mt_thread_attach();
}

/* Called with each block whose thread ends, before the block is recycled. Registered once, at load, before any thread
 * records. */
void mt_thread_on_end(void (*listener)(struct mt_thread *self));

/* Returns the calling thread's state without starting to record: for tags. NULL when there is no memory or recording is
 * off. */
struct mt_thread *mt_thread_create(void);
static inline struct mt_thread *mt_thread_idle(void) {
  struct mt_thread *self = mt_self;
  return MT_LIKELY(self) ? self : mt_thread_create();
}

static inline bool mt_thread_recording(const struct mt_thread *self) {
  uint64_t epoch = __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_RELAXED);
  return epoch && self->epoch == epoch;
}

/* Around a capture that other threads may have to wait for. No fence: mt_threads_wait_for_captures comes after a
 * membarrier(2) on the other side, which orders the store of the flag before what follows it. */
static inline void mt_thread_capture_begin(struct mt_thread *self) {
  __atomic_store_n(&self->capturing, 1, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
static inline void mt_thread_capture_end(struct mt_thread *self) {
  __atomic_store_n(&self->captured, self->captured + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&self->capturing, 0, __ATOMIC_RELEASE);
}

/* Waits until each capture that is under way in another thread has ended, at most limit_ms. */
void mt_threads_wait_for_captures(unsigned limit_ms);

/* Returns the calling thread's state if this process records already, attaching the thread if need be; NULL if no CUDA
 * call was made yet. */
struct mt_thread *mt_thread_recording_now(void);

/* True if this process has a spool of its own, not only one that its parent had. Async-signal-safe. */
bool mt_recorder_has_spool(void);

/* True while recording is to begin later, on request. */
bool mt_recorder_asleep(void);
