#define _GNU_SOURCE
#include "python/python.h"

#include <string.h>

#include "base/thread.h"
#include "python/pyfinalize.h"
#include "python/pyframe.h"
#include "python/pymemo.h"
#include "python/pystack.h"
#include "spool/dict.h"

/* How many walks in a row must find everything as it should be before reads go straight to memory. */
#define MT_PY_CLEAN_WALKS 64u

static uint32_t clean_walks;

static bool is_object(struct mt_pywalk *w, uintptr_t object, uintptr_t type) {
  return mt_pyframe_word(w, object + w->layout->object_type, true) == type;
}

static bool within(struct mt_pywalk *w, uintptr_t code, uint64_t at) {
  const struct mt_pylayout *l = w->layout;
  if (l->shape != MT_PY_OBJECTS) {
    uint64_t units = mt_pyframe_word(w, code + l->object_type + 8, true), offset = at - code - l->code_bytes + 2;
    return offset <= 2 * units + 2;
  }
  uintptr_t bytes = mt_pyframe_word(w, code + l->code_bytes, true);
  return (uint32_t)at == UINT32_MAX ||
         (uint32_t)at * (uint64_t)l->position_unit < mt_pyframe_word(w, bytes + l->bytes_length, true);
}

/* Checks that fail only if the layout is wrong. */
static void check_frame(struct mt_pywalk *w, uintptr_t code, uint64_t at) {
  const struct mt_interpreter *py = &mt_interpreter;
  if (w->wrong) return;
  if (!code || !is_object(w, code, py->code_type)) w->wrong = "a frame's code is no code object";
  else if (!is_object(w, mt_pyframe_word(w, code + w->layout->code_name, true), py->text_type))
    w->wrong = "a code object's name is no text";
  else if (!is_object(w, mt_pyframe_word(w, code + w->layout->code_lines, true), py->bytes_type))
    w->wrong = "a code object's lines are no bytes";
  else if (!within(w, code, at)) w->wrong = "a frame stands outside of its code";
}

static inline __attribute__((always_inline)) unsigned walk_frames(struct mt_pywalk *w, uintptr_t frame,
                                                                  struct mt_pyraw *out, unsigned depth,
                                                                  enum mt_stack_end *end, enum mt_pyshape shape,
                                                                  bool free_threaded, bool checked) {
  unsigned count = 0;
  for (; frame && !w->wrong; frame = mt_pyframe_word(w, frame + w->layout->frame_back, checked)) {
    if (mt_pyframe_is_shim(w, frame, shape, checked)) {
      if (count) out[count - 1].code |= 1;
      continue;
    }
    if (count == depth) {
      *end = MT_STACK_DEPTH;
      return count;
    }
    struct mt_pyraw *raw = &out[count++];
    uintptr_t code = mt_pyframe_word(w, frame + w->layout->frame_code, checked) & ~MT_PY_FLAGS;
    if (checked && (w->wrong || !is_object(w, code, mt_interpreter.code_type))) {
      if (!w->wrong) w->wrong = "a frame's code is no code object";
      break;
    }
    raw->code = code | (shape == MT_PY_OBJECTS ||
                        (shape == MT_PY_FLAGGED && mt_pyframe_byte(w, frame + w->layout->frame_entry, checked)));
    raw->position = mt_pyframe_position(w, frame, code, shape, free_threaded, checked);
    raw->identity = mt_pyframe_identity(w, code, checked);
    raw->self = mt_pyframe_called_module(w, frame, raw, checked);
    if (checked) check_frame(w, code, raw->position);
  }
  if (count) out[count - 1].code |= 1;
  *end = MT_STACK_WHOLE;
  return count;
}

static uintptr_t innermost(struct mt_pywalk *w, uintptr_t thread, bool checked) {
  uintptr_t frame = mt_pyframe_word(w, thread + w->layout->thread_frame, checked);
  if (w->layout->minor != 11 && w->layout->minor != 12) return frame;
  return frame ? mt_pyframe_word(w, frame + w->layout->chain_frame, checked) : 0;
}

static unsigned walk_checked(struct mt_pywalk *w, uintptr_t thread, struct mt_pyraw *out, unsigned depth,
                             enum mt_stack_end *end) {
  unsigned count = 0;
  uintptr_t frame = innermost(w, thread, true);
  if (!w->wrong) count = walk_frames(w, frame, out, depth, end, w->layout->shape, w->layout->free_threaded, true);
  if (w->wrong) {
    mt_interpreter_disable(w->wrong);
    *end = MT_STACK_UNREADABLE;
    return 0;
  }
  uint32_t checked = MT_PY_CHECKED;
  if (count && __atomic_add_fetch(&clean_walks, 1, __ATOMIC_RELAXED) >= MT_PY_CLEAN_WALKS)
    __atomic_compare_exchange_n(&mt_interpreter.state, &checked, MT_PY_TRUSTED, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
  return count;
}

/* The calling thread, if it may be walked: else 0. */
static uintptr_t walkable(uint32_t state) {
  if (state < MT_PY_CHECKED || mt_pyfinalize_forbids_walk()) return 0;
  uintptr_t thread = (uintptr_t)mt_interpreter.thread_state();
  return thread && !mt_interpreter.finalizing() ? thread : 0;
}

static unsigned walk_trusted(struct mt_pywalk *w, uintptr_t frame, struct mt_pyraw *out, unsigned depth,
                             enum mt_stack_end *end) {
  if (w->layout->free_threaded) return walk_frames(w, frame, out, depth, end, MT_PY_SHIMMED, true, false);
  switch ((enum mt_pyshape)w->layout->shape) {
    case MT_PY_OBJECTS: return walk_frames(w, frame, out, depth, end, MT_PY_OBJECTS, false, false);
    case MT_PY_FLAGGED: return walk_frames(w, frame, out, depth, end, MT_PY_FLAGGED, false, false);
    case MT_PY_SHIMMED: return walk_frames(w, frame, out, depth, end, MT_PY_SHIMMED, false, false);
  }
  return 0;
}

unsigned mt_python_walk(struct mt_pyraw *out, unsigned depth, enum mt_stack_end *end) {
  uint32_t state = mt_interpreter_state();
  *end = MT_STACK_WHOLE;
  uintptr_t thread = depth ? walkable(state) : 0;
  if (!thread) return 0;
  struct mt_pywalk w = {&mt_interpreter.layout, NULL};
  return state == MT_PY_CHECKED ? walk_checked(&w, thread, out, depth, end)
                                : walk_trusted(&w, innermost(&w, thread, false), out, depth, end);
}

/* Walks, and remembers what it found for the next time that the key comes. */
static __attribute__((noinline)) uint32_t walk_and_memoize(struct mt_thread *self, struct mt_pywalk *w, uintptr_t frame,
                                                           unsigned depth, uint64_t key) {
  enum mt_stack_end end;
  bool persistent;
  uint32_t generation = __atomic_load_n(&mt_module_calls_known, __ATOMIC_ACQUIRE);
  self->pywalks++;
  unsigned count = walk_trusted(w, frame, self->python, mt_dict_depth(depth), &end);
  uint32_t id = count ? mt_pystack_intern(self->python, count, end, &persistent) : 0;
  struct mt_stack_memo *memo = id && persistent && end == MT_STACK_WHOLE && !w->layout->free_threaded
                                   ? mt_pymemo_insert(key, w, frame, id, generation)
                                   : NULL;
  mt_memo_table_chain(&self->pymemo, memo);
  return id;
}

static inline __attribute__((always_inline)) uint32_t capture_predicted(struct mt_thread *self, struct mt_pywalk *w,
                                                                        uintptr_t frame, unsigned depth,
                                                                        enum mt_pyshape shape) {
  uint64_t key = mt_pymemo_key(w, frame, self->pymemo);
  struct mt_stack_memo *memo = mt_pymemo_find(self->pymemo, key, w, frame, shape);
  if (MT_UNLIKELY(!memo)) return walk_and_memoize(self, w, frame, depth, key);
  mt_memo_table_chain(&self->pymemo, memo);
  return memo->id;
}

static __attribute__((noinline)) uint32_t capture_checked(struct mt_thread *self, struct mt_pywalk *w, uintptr_t thread,
                                                          unsigned depth) {
  enum mt_stack_end end;
  unsigned count = walk_checked(w, thread, self->python, mt_dict_depth(depth), &end);
  return count ? mt_python_intern(self->python, count, end) : 0;
}

uint32_t mt_python_capture(struct mt_thread *self, unsigned depth) {
  uint32_t state = mt_interpreter_state();
  uintptr_t thread = walkable(state);
  if (!thread) return 0;
  struct mt_pywalk w = {&mt_interpreter.layout, NULL};
  if (MT_UNLIKELY(state == MT_PY_CHECKED)) return capture_checked(self, &w, thread, depth);
  uintptr_t frame = innermost(&w, thread, false);
  if (!frame) return 0;
  switch ((enum mt_pyshape)w.layout->shape) {
    case MT_PY_OBJECTS: return capture_predicted(self, &w, frame, depth, MT_PY_OBJECTS);
    case MT_PY_FLAGGED: return capture_predicted(self, &w, frame, depth, MT_PY_FLAGGED);
    case MT_PY_SHIMMED: return capture_predicted(self, &w, frame, depth, MT_PY_SHIMMED);
  }
  return 0;
}

uint64_t mt_python_self(uint64_t code, unsigned index) {
  const struct mt_interpreter *py = &mt_interpreter;
  if (mt_interpreter_state() < MT_PY_CHECKED) return 0;
  uintptr_t thread = (uintptr_t)py->thread_state();
  if (!thread || py->finalizing()) return 0;
  struct mt_pywalk w = {&py->layout, NULL};
  uintptr_t frame = innermost(&w, thread, true);
  for (unsigned i = 0; frame && !w.wrong; frame = mt_pyframe_word(&w, frame + py->layout.frame_back, true)) {
    if (mt_pyframe_is_shim(&w, frame, py->layout.shape, true) || i++ < index) continue;
    bool same = (mt_pyframe_word(&w, frame + py->layout.frame_code, true) & ~MT_PY_FLAGS) == code;
    uint64_t self = same ? mt_pyframe_word(&w, frame + py->layout.frame_locals, true) & ~MT_PY_FLAGS : 0;
    return w.wrong ? 0 : self;
  }
  return 0;
}
