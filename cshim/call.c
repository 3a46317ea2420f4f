#define _GNU_SOURCE
#include "call.h"

#include <errno.h>

#include "clock.h"
#include "dict.h"
#include "hooks.h"
#include "module.h"
#include "ring.h"

typedef int (*ctx_device_function)(int *device);

static ctx_device_function ctx_device;
static uint32_t ctx_device_sought;

bool mt_knows_ctx_device(void) { return __atomic_load_n(&ctx_device, __ATOMIC_RELAXED) != NULL; }

void mt_learn_ctx_device(void *real) { __atomic_store_n(&ctx_device, (ctx_device_function)real, __ATOMIC_RELEASE); }

void mt_forget_ctx_device(void) {
  void *have = (void *)__atomic_load_n(&ctx_device, __ATOMIC_ACQUIRE);
  if (have && mt_module_find((uintptr_t)have)) return;
  mt_learn_ctx_device(NULL);
  __atomic_store_n(&ctx_device_sought, 0, __ATOMIC_RELAXED);
}

/* Two table look-ups in the driver, legal during stream capture; only asked after calls that cost far more. */
static int current_device(void) {
  ctx_device_function ask = __atomic_load_n(&ctx_device, __ATOMIC_ACQUIRE);
  if (MT_UNLIKELY(!ask)) {
    if (__atomic_exchange_n(&ctx_device_sought, 1, __ATOMIC_RELAXED)) return MT_HOST;
    int error = errno;
    mt_learn_ctx_device(mt_driver_symbol("cuCtxGetDevice"));
    errno = error;
    ask = __atomic_load_n(&ctx_device, __ATOMIC_ACQUIRE);
  }
  int device;
  return ask && !ask(&device) ? device : MT_HOST;
}

struct mt_recent *mt_recent_caller(struct mt_thread *self, uintptr_t caller) {
  struct mt_recent *recent = &self->recent[caller * 0x9E3779B97F4A7C15ull >> (64 - MT_RECENT_BITS)];
  uint32_t generation = __atomic_load_n(&mt_module_generation, __ATOMIC_RELAXED);
  if (MT_LIKELY(recent->caller == caller && recent->generation == generation)) return recent;
  int error = errno;
  uint64_t frame = caller;
  mt_module_note(caller - 1);
  recent->stack = mt_dict_intern(MT_DICT_STACK, &frame, sizeof frame);
  recent->real = NULL;
  recent->caller = caller;
  recent->generation = generation;
  errno = error;
  return recent;
}

static void draw(struct mt_call *call) {
  call->outer = mt_seq_begin(call->self);
  call->announced = 1;
  call->seq = mt_seq_draw();
}

static void end(struct mt_call *call) {
  if (call->announced) mt_seq_end(call->self, call->outer);
}

/* cudaMalloc of 0 bytes succeeds with a null pointer: nothing was allocated. */
static bool is_nothing(const struct mt_outcome *o) { return o->kind == MT_ALLOC && !o->status && !o->addr; }

static void write_record(struct mt_call *call, const struct mt_outcome *o, uint16_t runtime, uint8_t flags) {
  struct mt_thread *self = call->self;
  if (MT_UNLIKELY(is_nothing(o))) return;
  struct mt_record *r = mt_record_open(self);
  if (MT_UNLIKELY(!r)) return;
  r->stack = mt_recent_caller(self, call->caller)->stack;
  r->addr = o->addr;
  r->size = o->size;
  r->stream = o->stream;
  r->pystack = 0;
  r->tag = self->tag;
  r->api = call->id;
  r->kind = o->kind;
  r->device = (int8_t)(o->device == MT_CURRENT ? current_device() : o->device);
  r->status = o->status;
  r->runtime = runtime;
  r->mem = o->mem;
  r->flags = flags;
  if (!call->seq) draw(call); /* an allocation: after the real call */
  r->ticks = mt_clock_ticks();
  mt_record_commit(self, r, call->seq);
}

void mt_driver_open(struct mt_call *call, uint16_t id, uintptr_t caller, int releases) {
  *call = (struct mt_call){.self = mt_thread_get(), .id = id, .caller = caller};
  struct mt_thread *self = call->self;
  if (!self || !releases) return;
  if (self->reserved_seq) { /* the runtime call around us drew it */
    call->seq = self->reserved_seq;
    self->reserved_seq = 0;
  } else
    draw(call);
}

void mt_driver_close(struct mt_call *call, const struct mt_outcome *outcome) {
  struct mt_thread *self = call->self;
  if (!self) return;
  uint16_t runtime = self->runtime;
  if (runtime) {
    call->caller = self->runtime_caller;
    self->driver_events++;
  }
  write_record(call, outcome, runtime, 0);
  end(call);
}

void mt_runtime_open(struct mt_call *call, uint16_t id, uintptr_t caller, int releases) {
  *call = (struct mt_call){.self = mt_thread_get(), .id = id, .caller = caller};
  struct mt_thread *self = call->self;
  if (!self || self->runtime) return;
  call->outermost = 1;
  self->runtime = id;
  self->runtime_caller = caller;
  self->driver_events = 0;
  if (releases) {
    draw(call);
    self->reserved_seq = call->seq;
  }
}

/* The driver event inside carries everything. Where none was seen, the runtime call itself is the event, so that nothing is missed and nothing is counted
 * twice. */
void mt_runtime_close(struct mt_call *call, const struct mt_outcome *outcome) {
  struct mt_thread *self = call->self;
  if (!self || !call->outermost) return;
  bool alone = call->seq ? self->reserved_seq != 0 : self->driver_events == 0;
  self->runtime = 0;
  self->reserved_seq = 0;
  if (alone) write_record(call, outcome, call->id, MT_FLAG_RUNTIME_ONLY);
  end(call);
}
