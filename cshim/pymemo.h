/* Python stacks remembered with the addresses of their frames. No address is read before what leads to it was found to be the same, but the processor need not wait for
 * that to be known: it goes on with the addresses that are remembered. Internal to the Python walker. */
#pragma once

#include "expected.h"
#include "pyframe.h"

/* A frame, those without code included. */
struct mt_pymemo_frame {
  uint64_t frame;    /* its address */
  uint64_t code;     /* the word that names its code, flags included */
  uint64_t entry;    /* whether C code entered the interpreter with it, or it stands for C code */
  uint64_t position; /* the last three as in mt_pyraw; 0 in a frame without code */
  uint64_t identity;
  uint64_t self;
};

/* What a walk of a whole stack found. */
struct mt_pymemo {
  struct mt_expected head; /* its generation is mt_module_calls_known */
  uint32_t count;
  struct mt_pymemo_frame frames[]; /* innermost first */
};

extern struct mt_memory mt_pymemos; /* by what is known before a walk */

/* What makes a stack expected: where the thread is, and which remembered stack it was in before. */
MT_PYFRAME uint64_t mt_pymemo_key(struct mt_pywalk *w, uintptr_t frame, uint32_t before) {
  return frame ^ mt_pyframe_word(w, frame + w->layout->frame_position, false) << 17 ^ (uint64_t)before << 40;
}

MT_PYFRAME uint64_t mt_pymemo_entry(struct mt_pywalk *w, uintptr_t frame, enum mt_pyshape shape) {
  return shape == MT_PY_OBJECTS ? 1 : shape == MT_PY_FLAGGED ? mt_pyframe_byte(w, frame + w->layout->frame_entry, false) : mt_pyframe_is_shim(w, frame, shape, false);
}

MT_PYFRAME bool mt_pymemo_frame_holds(const struct mt_pymemo_frame *known, struct mt_pywalk *w, enum mt_pyshape shape) {
  const struct mt_pylayout *l = w->layout;
  if (mt_pyframe_word(w, known->frame + l->frame_code, false) != known->code || mt_pymemo_entry(w, known->frame, shape) != known->entry) return false;
  if (shape == MT_PY_SHIMMED && known->entry) return true;
  uintptr_t code = known->code & ~MT_PY_FLAGS;
  if (mt_pyframe_position(w, known->frame, code, shape, false, false) != known->position || mt_pyframe_identity(w, code, false) != known->identity) return false;
  return MT_LIKELY(!known->self) || (mt_pyframe_word(w, known->frame + l->frame_locals, false) & ~MT_PY_FLAGS) == known->self;
}

/* True if the memo is the stack that begins with the frame. */
MT_PYFRAME bool mt_pymemo_holds(const struct mt_pymemo *memo, struct mt_pywalk *w, uintptr_t frame, enum mt_pyshape shape) {
  if (memo->head.generation != __atomic_load_n(&mt_module_calls_known, __ATOMIC_RELAXED)) return false;
  const struct mt_pymemo_frame *known = memo->frames, *end = known + memo->count;
  for (; known < end; known++) {
    if (frame != known->frame || !mt_pymemo_frame_holds(known, w, shape)) return false;
    frame = mt_pyframe_word(w, known->frame + w->layout->frame_back, false);
  }
  return !frame;
}

/* The expected memo that is the stack which begins with the frame, or NULL. */
MT_PYFRAME const struct mt_pymemo *mt_pymemo_find(uint64_t key, struct mt_pywalk *w, uintptr_t frame, enum mt_pyshape shape) {
  if (MT_UNLIKELY(!mt_pymemos.pairs)) return NULL;
  const struct mt_expected_pair *pair = mt_memory_pair(&mt_pymemos, key);
  const struct mt_pymemo *memo = (const void *)__atomic_load_n(&pair->last, __ATOMIC_ACQUIRE);
  if (memo && mt_pymemo_holds(memo, w, frame, shape)) return memo;
  memo = (const void *)__atomic_load_n(&pair->before, __ATOMIC_ACQUIRE);
  return memo && mt_pymemo_holds(memo, w, frame, shape) ? memo : NULL;
}

/* Expects the whole stack that was just walked from the frame and has the given id, the next time that the key comes. generation: of before the walk. */
const struct mt_pymemo *mt_pymemo_keep(uint64_t key, struct mt_pywalk *w, uintptr_t frame, uint32_t id, uint32_t generation);
