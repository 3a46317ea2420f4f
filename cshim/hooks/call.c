#define _GNU_SOURCE
#include "hooks/call.h"

#include <signal.h>
#include <stdbool.h>

#include "base/atload.h"
#include "base/clock.h"
#include "base/sys.h"
#include "base/wake.h"
#include "hooks/abi.h"
#include "hooks/context.h"
#include "hooks/graph.h"
#include "hooks/hooks.h"
#include "hooks/query.h"
#include "hooks/reserve.h"
#include "record/capture.h"
#include "spool/dict.h"
#include "spool/module.h"
#include "spool/ring.h"

static void (*out_of_memory)(void) MT_AT_LOAD;

void mt_call_on_out_of_memory(void (*listener)(void)) { out_of_memory = listener; }

static void draw(struct mt_call *call) {
  call->outer = mt_seq_begin(call->self);
  call->sets_inflight = 1;
  call->seq = mt_seq_draw();
}

static void end(struct mt_call *call) {
  if (call->sets_inflight) mt_seq_end(call->self, call->outer);
}

/* cudaMalloc of 0 bytes succeeds with a null pointer: nothing was allocated. */
static bool is_null_allocation(const struct mt_outcome *o) { return o->kind == MT_ALLOC && !o->status && !o->addr; }

/* Memory that ends with the context in which it was allocated. What was imported into a pool belongs to that. */
static bool context_owns(const struct mt_call *call, const struct mt_outcome *o) {
  switch (o->mem) {
    case MT_MEM_DEVICE: case MT_MEM_MANAGED: case MT_MEM_HOST: case MT_MEM_REGISTERED: case MT_MEM_ARRAY:
      return o->kind == MT_ALLOC;
    case MT_MEM_FOREIGN:
      return o->kind == MT_ALLOC && call->id != MT_ID_cuMemPoolImportPointer &&
             call->id != MT_ID_cudaMemPoolImportPointer;
  }
  return false;
}

/* Stream-ordered memory is on the device of its stream or its pool, which need not be that of the current context.
 * After a refused call there is no address to query. */
static __attribute__((noinline)) int async_device(const struct mt_call *call, const struct mt_outcome *o) {
  enum {
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    FIRST_HANDLE = 3 /* below: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
  };
  int (*query)(void *, int, uint64_t) = mt_query_find(MT_QUERY_POINTER);
  int (*of)(uint64_t, uint64_t *) = mt_query_find(MT_QUERY_STREAM_CONTEXT);
  int device;
  uint64_t context;
  if (!o->status) return query && !query(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, o->addr) ? device : o->device;
  if (call->pool) return mt_reserve_device(call->pool, o->device);
  return o->stream >= FIRST_HANDLE && of && !of(o->stream, &context) ? mt_context_device(context, o->device)
                                                                     : o->device;
}

/* Completes an outcome by what only the driver knows: the device and the context of the calling thread, whether the
 * stream is being captured. */
static void complete(struct mt_call *call, struct mt_outcome *o) {
  uint64_t graph;
  if (o->mem == MT_MEM_ASYNC && MT_UNLIKELY(mt_graph_captures(o->stream, call->id, &graph)) && o->kind <= MT_FREE) {
    o->mem = MT_MEM_GRAPH; /* a node of the graph to be, which gets its memory when that is launched */
    o->owner = o->kind == MT_ALLOC ? graph : 0;
  }
  bool owned = context_owns(call, o);
  if (!owned && o->device != MT_CURRENT) return mt_context_note_device(o->device);
  uint64_t context = 0;
  int device = mt_context_current(call->self, call->id, call->caller, &context);
  if (o->device == MT_CURRENT) o->device = device;
  if (o->mem == MT_MEM_ASYNC && o->kind == MT_ALLOC && MT_UNLIKELY(mt_context_several_devices()))
    o->device = async_device(call, o);
  if (owned) o->owner = context;
  if (o->mem == MT_MEM_ARRAY && o->size) o->flags |= MT_FLAG_ESTIMATED;
}

static void write_record(struct mt_call *call, const struct mt_outcome *o, uint16_t runtime, uint8_t flags) {
  struct mt_thread *self = call->self;
  struct mt_stacks stacks = o->kind == MT_RESERVE || !self->frame
                                ? (struct mt_stacks){0, 0}
                                : mt_capture(self, self->frame, call->caller, o->kind);
  struct mt_record *r = mt_record_open(self, o->kind);
  if (MT_UNLIKELY(!r)) return;
  r->stack = stacks.native;
  r->pystack = stacks.python;
  r->addr = o->addr;
  r->size = o->size;
  r->stream = o->related;
  r->tag = self->tag;
  r->api = call->id;
  r->kind = o->kind;
  r->device =
      (int8_t)(o->device >= MT_HOST && o->device <= INT8_MAX ? o->device : MT_HOST); /* a refused call may name any */
  r->status = o->status;
  r->runtime = runtime;
  r->mem = o->mem;
  r->flags = o->flags | flags;
  if (!call->seq) draw(call); /* an allocation: after the real call */
  r->ticks = mt_clock_ticks();
  mt_record_commit(self, r, call->seq);
}

static void record_outcome(struct mt_call *call, struct mt_outcome *o, uint16_t runtime, uint8_t flags) {
  if (MT_UNLIKELY(is_null_allocation(o))) return;
  complete(call, o);
  write_record(call, o, runtime, flags);
  if (MT_UNLIKELY(o->status == CUDA_ERROR_OUT_OF_MEMORY && o->kind == MT_ALLOC)) {
    mt_wake_sampler(MT_OCCASION_OOM);
    if (out_of_memory) out_of_memory();
  }
  if (MT_UNLIKELY(o->mem == MT_MEM_ASYNC && o->kind == MT_ALLOC && !o->status))
    mt_reserve_grown(call->self, call->id, call->caller, o->device, call->pool, o->size);
}

void mt_call_record_extra(struct mt_thread *self, uint16_t id, uintptr_t caller, const struct mt_outcome *outcome) {
  mt_call_record_extra_at(self, id, caller, outcome, 0);
}

void mt_call_record_extra_at(struct mt_thread *self, uint16_t id, uintptr_t caller, const struct mt_outcome *outcome,
                             uint64_t seq) {
  struct mt_call call = {.self = self, .id = id, .caller = caller, .seq = seq};
  write_record(&call, outcome, self->runtime, 0);
  end(&call);
}

/* Signal handlers may run on a stack of their own, and that may lie in a frame of the thread's. */
static bool on_signal_stack(void) {
  stack_t stack;
  return mt_sys(SYS_sigaltstack, NULL, &stack) || stack.ss_flags & SS_ONSTACK;
}

/* True if the outermost call was abandoned: a signal handler jumped out of it, or a callback of the driver threw. Then
 * its frame is at this one's address, or below it on the same stack. */
static bool was_abandoned(const struct mt_thread *self, const struct mt_frame *frame) {
  return self->frame <= frame && mt_stack_holds(&self->stack, self->frame) && mt_stack_holds(&self->stack, frame) &&
         !on_signal_stack();
}

/* Does what its close would have done; its number, if it drew one, stays unused. */
static __attribute__((noinline)) void close_abandoned(struct mt_thread *self) {
  self->frame = NULL;
  self->runtime = 0;
  self->reserved_seq = 0;
  if (self->ring->calls & 1) mt_ring_call(self);
  if (!self->busy) mt_seq_end(self, 0);
}

/* The stacks of what happens inside begin at the outermost call. */
static void frame_call(struct mt_call *call, const struct mt_frame *frame) {
  struct mt_thread *self = call->self;
  if (self->frame && MT_UNLIKELY(was_abandoned(self, frame))) close_abandoned(self);
  call->framed = !self->frame;
  if (call->framed) self->frame = frame;
}

static void unframe_call(struct mt_call *call) {
  if (call->framed) call->self->frame = NULL;
}

static inline void enter_driver(struct mt_call *call, const struct mt_frame *frame) {
  struct mt_thread *self = call->self;
  frame_call(call, frame);
  call->recorded_before = self->recorded_count;
  call->outermost_driver = !(self->ring->calls & 1);
  if (MT_LIKELY(call->outermost_driver)) mt_ring_call(self);
}

/* The call is the first in a child of a process that was recording. Most such calls are refused, and are not worth two
 * files. */
static bool is_worth_recording(struct mt_call *call, int status) {
  if ((status && status != CUDA_ERROR_OUT_OF_MEMORY) || mt_recorder_is_off() || !mt_recorder_in_child()) return false;
  call->self = mt_thread_get();
  call->outer = 0;
  return call->self;
}

bool mt_driver_open_late(struct mt_call *call, int status) {
  const struct mt_frame *frame = (const struct mt_frame *)call->outer;
  if (!is_worth_recording(call, status)) return false;
  enter_driver(call, frame);
  return true;
}

void mt_driver_open(struct mt_call *call, uint16_t id, const struct mt_frame *frame, int releases) {
  *call = (struct mt_call){.self = mt_thread_get_lazily(), .id = id, .caller = frame->caller};
  struct mt_thread *self = call->self;
  if (!self) {
    call->outer = (uintptr_t)frame;
    return;
  }
  enter_driver(call, frame);
  if (!releases) return;
  if (self->reserved_seq) /* the outer call drew it */
    call->seq = self->reserved_seq;
  else
    draw(call);
  self->reserved_seq = call->seq;
}

static void leave_driver(struct mt_call *call) {
  if (MT_LIKELY(call->outermost_driver)) mt_ring_call(call->self);
  if (call->seq == call->self->reserved_seq)
    call->self->reserved_seq = 0; /* an allocation inside a free leaves the free its number */
  end(call);
  unframe_call(call);
}

/* Another interposer that comes after this library may have called the wrapper again on its way to the driver. That
 * inner call was recorded, and is closer to the driver: the outer one is not recorded. */
static bool recorded_below(struct mt_call *call, const struct mt_outcome *o) {
  struct mt_thread *self = call->self;
  bool taken = call->seq && self->reserved_seq != call->seq;
  if (MT_LIKELY(self->recorded_count == call->recorded_before) || self->recorded_kind != o->kind ||
      self->recorded_addr != o->addr) {
    if (taken) call->seq = mt_seq_draw(); /* for something else, it seems */
    return false;
  }
  return !call->seq || taken;
}

void mt_driver_close(struct mt_call *call, struct mt_outcome *outcome) {
  struct mt_thread *self = call->self;
  if (!self) return;
  uint16_t runtime = self->runtime;
  if (runtime) {
    call->caller = self->runtime_caller;
    self->driver_events += outcome->kind == MT_ALLOC;
  }
  if (!recorded_below(call, outcome)) {
    record_outcome(call, outcome, runtime, 0);
    self->recorded_count++;
    self->recorded_kind = outcome->kind;
    self->recorded_addr = outcome->addr;
  }
  leave_driver(call);
}

void mt_driver_skip(struct mt_call *call) {
  if (call->self) leave_driver(call);
}

static inline void enter_runtime(struct mt_call *call) {
  struct mt_thread *self = call->self;
  call->outermost = 1;
  self->runtime = call->id;
  self->runtime_caller = call->caller;
  self->driver_events = 0;
}

bool mt_runtime_open_late(struct mt_call *call, int status) {
  const struct mt_frame *frame = (const struct mt_frame *)call->outer;
  if (!is_worth_recording(call, status)) return false;
  frame_call(call, frame);
  enter_runtime(call);
  return true;
}

void mt_runtime_open(struct mt_call *call, uint16_t id, const struct mt_frame *frame, int releases) {
  *call = (struct mt_call){.self = mt_thread_get_lazily(), .id = id, .caller = frame->caller};
  struct mt_thread *self = call->self;
  if (!self) {
    call->outer = (uintptr_t)frame;
    return;
  }
  frame_call(call, frame);
  if (self->runtime) return;
  enter_runtime(call);
  if (releases) {
    draw(call);
    self->reserved_seq = call->seq;
  }
}

/* The driver event inside carries everything. Where none was seen, the runtime call itself is the event, so that
 * nothing is missed and nothing is counted twice. A call that is no event itself (kind 0) only lends its name. */
void mt_runtime_close(struct mt_call *call, struct mt_outcome *outcome) {
  struct mt_thread *self = call->self;
  if (!self || !call->outermost) return;
  bool alone = call->seq ? self->reserved_seq != 0 : outcome->kind && self->driver_events == 0;
  self->reserved_seq = 0;
  self->runtime = 0;
  if (alone) {
    call->caller = self->runtime_caller;
    record_outcome(call, outcome, call->id, MT_FLAG_RUNTIME_ONLY);
  }
  end(call);
  unframe_call(call);
}
