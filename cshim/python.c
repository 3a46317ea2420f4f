#define _GNU_SOURCE
#include "python.h"

#include <string.h>

#include "guest.h"
#include "interpreter.h"
#include "peek.h"
#include "pycode.h"
#include "pyend.h"

/* How many walks in a row must find everything as it should be before reads go straight to memory. */
#define MT_PY_TRIAL 64u

/* Frames that belong to C code, where the interpreter is entered, have an owner from here on. */
#define MT_PY_OWNER_C 3u

/* From 3.14 on a frame's words carry flags in their lowest bits; objects lie at multiples of 16, or of 8 at least. */
#define MT_PY_FLAGS 7ull

static uint32_t clean_walks;

/* A walk through memory: checked until the interpreter is trusted. */
struct walk {
  const struct mt_pylayout *layout;
  const char *wrong; /* what was found that cannot be, NULL nothing */
};

static inline __attribute__((always_inline)) uint64_t word(struct walk *w, uintptr_t at, bool checked) {
  uint64_t value = 0;
  if (!checked) return *(const uint64_t *)at;
  if (!mt_peek(&value, at, sizeof value)) w->wrong = "a frame points to memory that cannot be read";
  return value;
}

static inline __attribute__((always_inline)) uint32_t half(struct walk *w, uintptr_t at, bool checked) {
  uint32_t value = 0;
  if (!checked) return *(const uint32_t *)at;
  if (!mt_peek(&value, at, sizeof value)) w->wrong = "a frame points to memory that cannot be read";
  return value;
}

static inline __attribute__((always_inline)) uint8_t byte(struct walk *w, uintptr_t at, bool checked) {
  uint8_t value = 0;
  if (!checked) return *(const uint8_t *)at;
  if (!mt_peek(&value, at, sizeof value)) w->wrong = "a frame points to memory that cannot be read";
  return value;
}

/* Two code objects that lie at one address one after the other differ in one of these: from 3.12 on each has a number of its own; before that they share a name,
 * a file, a table and a first line only by chance, and pystack.c looks closer where that may happen. */
static inline __attribute__((always_inline)) uint64_t identity(struct walk *w, uintptr_t code, bool checked) {
  const struct mt_pylayout *l = w->layout;
  uint64_t name = word(w, code + l->code_name, checked), lines = word(w, code + l->code_lines, checked), own = half(w, code + l->code_line, checked);
  if (l->code_version) own |= (uint64_t)half(w, code + l->code_version, checked) << 32;
  else own ^= word(w, code + l->code_file, checked) << 8;
  return (name + (lines << 23 | lines >> 41)) * 0x9E3779B97F4A7C15ull ^ own * 0xC2B2AE3D27D4EB4Full;
}

/* Where the frame stands in its bytecode, as an address in the code object; where frames are objects, as the number they keep. */
static inline __attribute__((always_inline)) uint64_t position(struct walk *w, uintptr_t frame, uintptr_t code, enum mt_pyshape shape, bool threaded, bool checked) {
  const struct mt_pylayout *l = w->layout;
  if (shape == MT_PY_OBJECTS) return half(w, frame + l->frame_position, checked);
  uint64_t at = word(w, frame + l->frame_position, checked);
  if (!threaded || !l->code_copies) return at;
  uint32_t index = half(w, frame + l->frame_copy, checked); /* copies: their number, then addresses; the first is the code object's own */
  if (!index) return at;
  uintptr_t copies = word(w, code + l->code_copies, checked);
  return at - word(w, copies + 8 + 8ull * index, checked) + code + l->code_bytes;
}

static bool is_object(struct walk *w, uintptr_t object, uintptr_t type) { return word(w, object + w->layout->object_type, true) == type; }

static bool within(struct walk *w, uintptr_t code, uint64_t at) {
  const struct mt_pylayout *l = w->layout;
  if (l->shape != MT_PY_OBJECTS) {
    uint64_t units = word(w, code + l->object_type + 8, true), offset = at - code - l->code_bytes + 2;
    return offset <= 2 * units + 2;
  }
  uintptr_t bytes = word(w, code + l->code_bytes, true);
  return (uint32_t)at == UINT32_MAX || (uint32_t)at * (uint64_t)l->position_unit < word(w, bytes + l->bytes_length, true);
}

/* What cannot be wrong where the layout is right. */
static void check_frame(struct walk *w, uintptr_t code, uint64_t at) {
  const struct mt_interpreter *py = &mt_interpreter;
  if (w->wrong) return;
  if (!code || !is_object(w, code, py->code_type)) w->wrong = "a frame's code is no code object";
  else if (!is_object(w, word(w, code + w->layout->code_name, true), py->text_type)) w->wrong = "a code object's name is no text";
  else if (!is_object(w, word(w, code + w->layout->code_lines, true), py->bytes_type)) w->wrong = "a code object's lines are no bytes";
  else if (!within(w, code, at)) w->wrong = "a frame stands outside of its code";
}

/* The module that the frame calls, for code objects that are known to. */
static inline __attribute__((always_inline)) uint64_t called_module(struct walk *w, uintptr_t frame, const struct mt_pyraw *raw, bool checked) {
  for (unsigned i = 0; i < MT_PY_MODULE_CALLS; i++) {
    uint64_t known = __atomic_load_n(&mt_module_calls[i].code, __ATOMIC_ACQUIRE);
    if (!known) return 0;
    if (known == (raw->code & ~1ull) && mt_module_calls[i].identity == raw->identity) return word(w, frame + w->layout->frame_locals, checked) & ~MT_PY_FLAGS;
  }
  return 0;
}

static inline __attribute__((always_inline)) bool is_shim(struct walk *w, uintptr_t frame, enum mt_pyshape shape, bool checked) {
  return shape == MT_PY_SHIMMED && byte(w, frame + w->layout->frame_owner, checked) >= MT_PY_OWNER_C;
}

static inline __attribute__((always_inline)) unsigned frames(struct walk *w, uintptr_t frame, struct mt_pyraw *out, unsigned depth, enum mt_stack_end *end,
                                                             enum mt_pyshape shape, bool threaded, bool checked) {
  unsigned count = 0;
  for (; frame && !w->wrong; frame = word(w, frame + w->layout->frame_back, checked)) {
    if (is_shim(w, frame, shape, checked)) {
      if (count) out[count - 1].code |= 1;
      continue;
    }
    if (count == depth) {
      *end = MT_STACK_DEPTH;
      return count;
    }
    struct mt_pyraw *raw = &out[count++];
    uintptr_t code = word(w, frame + w->layout->frame_code, checked) & ~MT_PY_FLAGS;
    if (checked && (w->wrong || !is_object(w, code, mt_interpreter.code_type))) {
      if (!w->wrong) w->wrong = "a frame's code is no code object";
      break;
    }
    raw->code = code | (shape == MT_PY_OBJECTS || (shape == MT_PY_FLAGGED && byte(w, frame + w->layout->frame_entry, checked)));
    raw->position = position(w, frame, code, shape, threaded, checked);
    raw->identity = identity(w, code, checked);
    raw->self = called_module(w, frame, raw, checked);
    if (checked) check_frame(w, code, raw->position);
  }
  if (count) out[count - 1].code |= 1;
  *end = MT_STACK_WHOLE;
  return count;
}

static uintptr_t innermost(struct walk *w, uintptr_t thread, bool checked) {
  uintptr_t frame = word(w, thread + w->layout->thread_frame, checked);
  if (w->layout->minor != 11 && w->layout->minor != 12) return frame;
  return frame ? word(w, frame + w->layout->chain_frame, checked) : 0;
}

static unsigned walk_checked(struct walk *w, uintptr_t thread, struct mt_pyraw *out, unsigned depth, enum mt_stack_end *end) {
  unsigned count = 0;
  uintptr_t frame = innermost(w, thread, true);
  if (!w->wrong) count = frames(w, frame, out, depth, end, w->layout->shape, w->layout->threaded, true);
  if (w->wrong) {
    mt_interpreter_off(w->wrong);
    *end = MT_STACK_UNREADABLE;
    return 0;
  }
  uint32_t checked = MT_PY_CHECKED;
  if (count && __atomic_add_fetch(&clean_walks, 1, __ATOMIC_RELAXED) >= MT_PY_TRIAL)
    __atomic_compare_exchange_n(&mt_interpreter.state, &checked, MT_PY_TRUSTED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  return count;
}

unsigned mt_python_walk(struct mt_pyraw *out, unsigned depth, enum mt_stack_end *end) {
  const struct mt_interpreter *py = &mt_interpreter;
  uint32_t state = mt_interpreter_state();
  *end = MT_STACK_WHOLE;
  if (state < MT_PY_CHECKED || !depth || mt_pyend_forbids()) return 0;
  uintptr_t thread = (uintptr_t)py->thread_state();
  if (!thread || py->finalizing()) return 0;
  struct walk w = {&py->layout, NULL};
  if (MT_UNLIKELY(state == MT_PY_CHECKED)) return walk_checked(&w, thread, out, depth, end);
  uintptr_t frame = innermost(&w, thread, false);
  if (py->layout.threaded) return frames(&w, frame, out, depth, end, MT_PY_SHIMMED, true, false);
  switch ((enum mt_pyshape)py->layout.shape) {
    case MT_PY_OBJECTS: return frames(&w, frame, out, depth, end, MT_PY_OBJECTS, false, false);
    case MT_PY_FLAGGED: return frames(&w, frame, out, depth, end, MT_PY_FLAGGED, false, false);
    case MT_PY_SHIMMED: return frames(&w, frame, out, depth, end, MT_PY_SHIMMED, false, false);
  }
  return 0;
}

uint64_t mt_python_self(uint64_t code, unsigned index) {
  const struct mt_interpreter *py = &mt_interpreter;
  if (mt_interpreter_state() < MT_PY_CHECKED) return 0;
  uintptr_t thread = (uintptr_t)py->thread_state();
  if (!thread || py->finalizing()) return 0;
  struct walk w = {&py->layout, NULL};
  uintptr_t frame = innermost(&w, thread, true);
  for (unsigned i = 0; frame && !w.wrong; frame = word(&w, frame + py->layout.frame_back, true)) {
    if (is_shim(&w, frame, py->layout.shape, true) || i++ < index) continue;
    bool same = (word(&w, frame + py->layout.frame_code, true) & ~MT_PY_FLAGS) == code;
    uint64_t self = same ? word(&w, frame + py->layout.frame_locals, true) & ~MT_PY_FLAGS : 0;
    return w.wrong ? 0 : self;
  }
  return 0;
}
