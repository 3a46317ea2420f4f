#define _GNU_SOURCE
/* The framework level: torch's caching allocator reports every block that it allocates or frees, and every
 * out-of-memory error (c10::reportMemoryUsageToProfiler, reportOutOfMemoryToProfiler, c10/core/Allocator.h). The
 * reports come while it holds its device lock, so their order is exact. */
#include <stdint.h>

#include "adapters/adapter.h"
#include "adapters/backward.h"
#include "adapters/torch.h"
#include "allocator/growth.h"
#include "allocator/place.h"
#include "allocator/requested.h"
#include "allocator/vtable.h"
#include "allocator/waiting.h"
#include "base/atload.h"
#include "base/clock.h"
#include "base/wake.h"
#include "elf/symbol.h"
#include "hooks/call.h"
#include "hooks/original.h"
#include "record/capture.h"
#include "spool/ring.h"

#define MT_C10_CUDA 1 /* c10::DeviceType */

/* The numbers of calls. */
#define MT_HOOK(number, level, symbol, ...) MT_ID_##symbol = number,
#define MT_CUSTOM(number, level, symbol, ...) MT_ID_##symbol = number,
#define MT_REPORT(number, symbol, mangled, shape) MT_ID_##symbol = number,
enum mt_id {
#include "hooks.def"
};
#undef MT_HOOK
#undef MT_CUSTOM
#undef MT_REPORT

/* The original of a reporting function, for a call site. A thread that records caches it with the caller; one that does
 * not uses the slot. */
static void *original(struct mt_slot *slot, const char *name, uintptr_t caller) {
  struct mt_thread *self = mt_self;
  if (!self || !mt_thread_recording(self)) return mt_slot_find(slot, name, caller);
  struct mt_recent *recent = mt_recent_caller(self, caller);
  if (MT_UNLIKELY(!recent->real)) recent->real = mt_slot_find(slot, name, caller);
  return recent->real;
}

/* c10::Device as it travels in a register: type in the low byte, index above it. */
static int cuda_device(uint16_t device) {
  if ((int8_t)device != MT_C10_CUDA) return MT_HOST;
  int index = (int8_t)(device >> 8);
  return index < 0 ? 0 : index;
}

/* Beside the counts of a block that is handed out, or refused: the operator that takes it. */
static __attribute__((noinline)) void put_operator(struct mt_thread *self, struct mt_record *r, bool python) {
  uint64_t op = mt_backward_op(self, python);
  r->allocated |= op << MT_COUNT_BITS;
  r->reserved |= op >> MT_OP_HALF << MT_COUNT_BITS;
}

/* Beside the size of a block that is handed out: its bytes beyond those that were requested. */
static __attribute__((noinline)) void put_rest(struct mt_record *r) {
  uint64_t requested = mt_requested_take(r->size);
  uint64_t rest = requested ? 1 + r->size - requested : 0;
  if (MT_UNLIKELY(rest >> MT_REST_BITS)) rest = 0;
  r->size |= rest << MT_COUNT_BITS;
  r->tag |= (uint32_t)(rest >> MT_REST_LOW) << MT_ID_BITS;
}

/* Beside the stacks of a block that is handed out: its stream and its private pool. */
static __attribute__((noinline)) void put_place(struct mt_record *r, int device) {
  uint32_t place = mt_place_intern(device);
  r->stack |= place << MT_ID_BITS;
  r->pystack |= place >> MT_PLACE_LOW << MT_ID_BITS;
}

/* Fields of an event of torch's, beside the thread's own. */
struct report {
  uint16_t id;
  uint8_t kind;
  int device;
  uint64_t addr, size, allocated, reserved;
};

static inline __attribute__((always_inline)) void write(struct mt_thread *self, const struct report *report,
                                                        struct mt_stacks stacks) {
  if (MT_UNLIKELY(mt_place_tracking) && self->waits)
    mt_waiting_record(self, report->kind, report->addr, report->size, report->device);
  struct mt_record *r = mt_record_open(self, report->kind);
  if (MT_UNLIKELY(!r)) return;
  uint64_t outer = mt_seq_begin(self), seq = mt_seq_draw();
  r->ticks = mt_clock_ticks();
  r->addr = report->addr;
  r->size = report->size;
  r->allocated = report->allocated & ((1ull << MT_COUNT_BITS) - 1);
  r->stack = stacks.native;
  r->pystack = stacks.python;
  r->tag = self->tag;
  r->api = report->id;
  r->kind = report->kind;
  r->device = (int8_t)report->device;
  r->reserved = report->reserved & ((1ull << MT_COUNT_BITS) - 1);
  if (report->kind == MT_ALLOC) {
    if (mt_requested.rounded | mt_requested.storage) put_rest(r);
    if (MT_UNLIKELY(mt_place_tracking)) put_place(r, report->device);
  }
  if (report->kind != MT_FREE && mt_backward_known()) put_operator(self, r, stacks.python);
  mt_record_commit(self, r, seq);
  mt_seq_end(self, outer);
}

static void record(uint16_t id, uint8_t kind, const struct mt_frame *frame, uint64_t addr, uint64_t size,
                   uint64_t allocated, uint64_t reserved, int device) {
  struct mt_thread *self = mt_thread_get();
  if (!self) return;
  write(self, &(struct report){id, kind, device, addr, size, allocated, reserved},
        mt_capture(self, frame, frame->caller, kind));
}

static inline bool is_detected(void) {
  return __atomic_load_n(&mt_adapters_detected, __ATOMIC_RELAXED) & 1u << MT_TORCH;
}

/* Before the first block is recorded, on a thread that records. */
static __attribute__((noinline)) void first_block(void) {
  mt_allocator_attach();
  mt_allocator_first_block();
  mt_adapter_detected(MT_TORCH);
}

static inline __attribute__((always_inline)) void usage(uint16_t id, const struct mt_frame *frame, void *ptr,
                                                        int64_t size, uint64_t allocated, uint64_t reserved,
                                                        uint16_t device) {
  if (mt_recorder_is_off()) return;
  int index = cuda_device(device);
  if (index < 0) return; /* the CPU allocator reports here too, while a profiler is on */
  uint64_t bytes = size < 0 ? 0 - (uint64_t)size : (uint64_t)size;
  struct mt_thread *self = mt_thread_get(); /* once: a thread without a ring counts an event as lost */
  if (!self) return;
  if (MT_UNLIKELY(!is_detected())) first_block();
  uint8_t kind = size < 0 ? MT_FREE : MT_ALLOC;
  mt_growth_update(index, allocated, kind == MT_FREE);
  write(self, &(struct report){id, kind, index, (uint64_t)ptr, bytes, allocated, reserved},
        mt_capture(self, frame, frame->caller, kind));
}

static struct {
  void (*before)(void);
  void (*after)(void);
} refusal MT_AT_LOAD;

void mt_torch_on_refusal(void (*before)(void), void (*after)(void)) { refusal.before = before, refusal.after = after; }

/* In the library that has the allocator. */
static uintptr_t allocator(void) { return (uintptr_t)mt_symbol_object("libc10_cuda.so").dynamic; }

void mt_torch_record_block(const struct mt_torch_block *block) {
  struct mt_thread *self = mt_thread_get();
  if (!self) return;
  if (!is_detected()) first_block();
  mt_requested = (struct mt_requested){.rounded = block->requested};
  mt_place = (struct mt_place){.pool = block->pool, .stream = 1 + block->stream};
  if (block->pool | block->stream) mt_place_begin();
  write(self,
        &(struct report){MT_ID_reportMemoryUsageToProfiler, MT_ALLOC, block->device, block->address, block->size,
                         block->allocated, block->reserved},
        mt_capture_at(self, allocator()));
  mt_place = (struct mt_place){0, 0};
}

void mt_torch_record_segment(uint64_t address, uint64_t size, int device) {
  struct mt_thread *self = mt_thread_get();
  if (!self) return;
  struct mt_stacks stacks = mt_capture_at(self, allocator());
  struct mt_record *r = mt_record_open(self, MT_ALLOC);
  if (!r) return;
  uint64_t outer = mt_seq_begin(self), seq = mt_seq_draw();
  *r = (struct mt_record){.ticks = mt_clock_ticks(),
                          .addr = address, .size = size, .stack = stacks.native, .pystack = stacks.python,
                          .tag = self->tag, .api = MT_ID_cuMemAlloc_v2, .kind = MT_ALLOC, .device = (int8_t)device,
                          .mem = MT_MEM_DEVICE};
  mt_record_commit(self, r, seq);
  mt_seq_end(self, outer);
}

#define MT_HOOK(...)
#define MT_CUSTOM(...)
#define MT_REPORT(number, symbol, mangled, shape) MT_REPORT_##shape(number, mangled)
#define MT_REPORT_OWN(number, mangled)
#define MT_REPORT_ROUND(number, mangled)
#define MT_REPORT_DENSE(number, mangled)
#define MT_REPORT_STRIDED(number, mangled)
#define MT_REPORT_STREAM(number, mangled)
#define MT_REPORT_POOL(number, mangled)
#define MT_REPORT_TEXT(number, mangled)
#define MT_REPORT_STRING(number, mangled)

#define MT_REPORT_USAGE(number, mangled) \
  static struct mt_slot slot_##number; \
  MT_EXPORT void mangled(void *ptr, int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device); \
  MT_EXPORT void mangled(void *ptr, int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device) { \
    const struct mt_frame *frame = __builtin_frame_address(0); \
    uintptr_t caller = (uintptr_t)__builtin_return_address(0); \
    usage(number, frame, ptr, size, allocated, reserved, device); \
    void (*real)(void *, int64_t, uint64_t, uint64_t, uint16_t) = original(&slot_##number, #mangled, caller); \
    if (real) real(ptr, size, allocated, reserved, device); \
  }

#define MT_REPORT_OOM(number, mangled) \
  static struct mt_slot slot_##number; \
  MT_EXPORT void mangled(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device); \
  MT_EXPORT void mangled(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device) { \
    const struct mt_frame *frame = __builtin_frame_address(0); \
    uintptr_t caller = (uintptr_t)__builtin_return_address(0); \
    int index = cuda_device(device); \
    if (index >= 0) { \
      if (refusal.before) refusal.before(); \
      record(number, MT_OOM, frame, 0, (uint64_t)size, allocated, reserved, index); \
      mt_wake_sampler(MT_OCCASION_OOM); \
      mt_adapter_out_of_memory(); \
      if (refusal.after) refusal.after(); \
    } \
    void (*real)(int64_t, uint64_t, uint64_t, uint16_t) = original(&slot_##number, #mangled, caller); \
    if (real) real(size, allocated, reserved, device); \
  }

#include "hooks.def"
