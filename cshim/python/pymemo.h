/* Memoized Python stacks, with the addresses of their frames. No address is read before what leads to it was verified,
 * but the processor need not wait for that: it goes on speculatively with the memoized addresses. Internal to the
 * Python walker. */
#pragma once

#include "python/pyframe.h"
#include "unwind/stackmemo.h"

/* A frame, those without code included. */
struct mt_pymemo_frame {
  uint64_t frame;    /* its address */
  uint64_t code;     /* the word that names its code, flags included */
  uint64_t stamp;    /* of the code object; 0 in a frame without code, as the next two */
  uint32_t position; /* from the code object's address, or as in mt_pyraw where frames are objects */
  uint16_t entry;    /* whether C code entered the interpreter with it, or it is a shim frame */
  uint16_t self;     /* number of the module that it calls, from 1 on, 0 none */
};

/* What a walk of a whole stack found. */
struct mt_pymemo {
  struct mt_stack_memo head; /* its generation is mt_module_calls_known */
  uint32_t count;
  struct mt_pymemo_frame frames[]; /* count of them, innermost first, then the modules' addresses */
};

extern struct mt_memo_table mt_pymemos; /* by what is known before a walk */

/* The key of the prediction: where the thread is, and its previous stack. */
MT_PYFRAME uint64_t mt_pymemo_key(struct mt_pywalk *w, uintptr_t frame, const struct mt_stack_memo *before) {
  return frame ^ mt_pyframe_word(w, frame + w->layout->frame_position, false) << 17 ^ (uint64_t)before << 26;
}

MT_PYFRAME uint64_t mt_pymemo_entry(struct mt_pywalk *w, uintptr_t frame, enum mt_pyshape shape) {
  return shape == MT_PY_OBJECTS   ? 1
         : shape == MT_PY_FLAGGED ? mt_pyframe_byte(w, frame + w->layout->frame_entry, false)
                                  : mt_pyframe_is_shim(w, frame, shape, false);
}

/* Distinguishes a code object from another one at the same address, and is quick to read: only persistent code is
 * memoized (mt_pystack_intern). */
MT_PYFRAME uint64_t mt_pymemo_stamp(struct mt_pywalk *w, uintptr_t code) {
  const struct mt_pylayout *l = w->layout;
  uint64_t name = mt_pyframe_word(w, code + l->code_name, false);
  if (l->code_version) return name ^ (uint64_t)mt_pyframe_half(w, code + l->code_version, false) << 32;
  return name * 0x9E3779B97F4A7C15ull ^ (mt_pyframe_word(w, code + l->code_file, false) << 20) ^
         mt_pyframe_half(w, code + l->code_line, false);
}

MT_PYFRAME uint32_t mt_pymemo_position(struct mt_pywalk *w, uintptr_t frame, uintptr_t code, enum mt_pyshape shape) {
  return (uint32_t)(mt_pyframe_position(w, frame, code, shape, false, false) - (shape == MT_PY_OBJECTS ? 0 : code));
}

MT_PYFRAME uint64_t mt_pymemo_module(struct mt_pywalk *w, uintptr_t frame) {
  return mt_pyframe_word(w, frame + w->layout->frame_locals, false) & ~MT_PY_FLAGS;
}

MT_PYFRAME bool mt_pymemo_frame_matches(const struct mt_pymemo_frame *known, const uint64_t *modules,
                                        struct mt_pywalk *w, enum mt_pyshape shape) {
  if (mt_pyframe_word(w, known->frame + w->layout->frame_code, false) != known->code ||
      mt_pymemo_entry(w, known->frame, shape) != known->entry)
    return false;
  if (shape == MT_PY_SHIMMED && known->entry) return true;
  uintptr_t code = known->code & ~MT_PY_FLAGS;
  if (mt_pymemo_position(w, known->frame, code, shape) != known->position || mt_pymemo_stamp(w, code) != known->stamp)
    return false;
  return MT_LIKELY(!known->self) || mt_pymemo_module(w, known->frame) == modules[known->self - 1];
}

/* True if the memo is the stack that begins with the frame. */
MT_PYFRAME bool mt_pymemo_matches(const struct mt_pymemo *memo, struct mt_pywalk *w, uintptr_t frame,
                                  enum mt_pyshape shape) {
  if (memo->head.generation != __atomic_load_n(&mt_module_calls_known, __ATOMIC_RELAXED)) return false;
  const struct mt_pymemo_frame *known = memo->frames, *end = known + memo->count;
  for (; known < end; known++) {
    if (frame != known->frame || !mt_pymemo_frame_matches(known, (const uint64_t *)end, w, shape)) return false;
    frame = mt_pyframe_word(w, known->frame + w->layout->frame_back, false);
  }
  return !frame;
}

/* The expected memo that is the stack which begins with the frame, or NULL. */
MT_PYFRAME struct mt_stack_memo *mt_pymemo_find(const struct mt_stack_memo *before, uint64_t key, struct mt_pywalk *w,
                                                uintptr_t frame, enum mt_pyshape shape) {
  if (MT_UNLIKELY(!mt_pymemos.pairs)) return NULL;
  struct mt_stack_memo *memo = before ? __atomic_load_n(&before->next, __ATOMIC_ACQUIRE) : NULL;
  if (memo && mt_pymemo_matches((const void *)memo, w, frame, shape)) return memo;
  const struct mt_stack_memo_pair *pair = mt_memo_table_pair(&mt_pymemos, key);
  memo = __atomic_load_n(&pair->last, __ATOMIC_ACQUIRE);
  if (memo && mt_pymemo_matches((const void *)memo, w, frame, shape)) return memo;
  memo = __atomic_load_n(&pair->before, __ATOMIC_ACQUIRE);
  return memo && mt_pymemo_matches((const void *)memo, w, frame, shape) ? memo : NULL;
}

/* Predicts the whole stack that was just walked from the frame and has the given id, for the next time that the key
 * comes. generation: of before the walk. */
struct mt_stack_memo *mt_pymemo_insert(uint64_t key, struct mt_pywalk *w, uintptr_t frame, uint32_t id,
                                       uint32_t generation);
