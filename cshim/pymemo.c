#include "pymemo.h"

/* Frames without code stand between others at most. */
#define MT_PYMEMO_MAX (2 * MT_PYTHON_MAX)

struct mt_memory mt_pymemos;

struct here {
  struct mt_pywalk *walk;
  uintptr_t frame;
};

static bool holds(const struct mt_expected *memo, const void *now) {
  const struct here *here = now;
  const struct mt_pymemo *known = (const void *)memo;
  switch ((enum mt_pyshape)here->walk->layout->shape) {
    case MT_PY_OBJECTS: return mt_pymemo_holds(known, here->walk, here->frame, MT_PY_OBJECTS);
    case MT_PY_FLAGGED: return mt_pymemo_holds(known, here->walk, here->frame, MT_PY_FLAGGED);
    case MT_PY_SHIMMED: return mt_pymemo_holds(known, here->walk, here->frame, MT_PY_SHIMMED);
  }
  return false;
}

static struct mt_pymemo_frame read_frame(struct mt_pywalk *w, uintptr_t frame) {
  enum mt_pyshape shape = w->layout->shape;
  struct mt_pymemo_frame known = {.frame = frame, .code = mt_pyframe_word(w, frame + w->layout->frame_code, false), .entry = mt_pymemo_entry(w, frame, shape)};
  if (shape == MT_PY_SHIMMED && known.entry) return known;
  uintptr_t code = known.code & ~MT_PY_FLAGS;
  known.position = mt_pyframe_position(w, frame, code, shape, false, false);
  known.identity = mt_pyframe_identity(w, code, false);
  known.self = mt_pyframe_called_module(w, frame, &(struct mt_pyraw){.code = code, .identity = known.identity}, false);
  return known;
}

static unsigned length(struct mt_pywalk *w, uintptr_t frame) {
  unsigned count = 0;
  for (; frame && count <= MT_PYMEMO_MAX; count++) frame = mt_pyframe_word(w, frame + w->layout->frame_back, false);
  return count;
}

static struct mt_pymemo *make(struct mt_pywalk *w, uintptr_t frame, uint32_t id, uint32_t generation) {
  unsigned count = length(w, frame);
  struct mt_pymemo *memo = count <= MT_PYMEMO_MAX ? mt_memory_room(&mt_pymemos, sizeof *memo + count * sizeof *memo->frames, id, generation) : NULL;
  if (!memo) return NULL;
  memo->count = count;
  for (unsigned i = 0; i < count; i++, frame = mt_pyframe_word(w, frame + w->layout->frame_back, false)) memo->frames[i] = read_frame(w, frame);
  return memo;
}

const struct mt_pymemo *mt_pymemo_keep(uint64_t key, struct mt_pywalk *w, uintptr_t frame, uint32_t id, uint32_t generation) {
  struct mt_expected **place;
  struct mt_pymemo *memo = (void *)mt_memory_find(&mt_pymemos, frame, id, generation, holds, &(struct here){w, frame}, &place);
  if (!memo) {
    if (!place || !(memo = make(w, frame, id, generation))) return NULL;
    __atomic_store_n(place, &memo->head, __ATOMIC_RELEASE);
  }
  mt_memory_expect(&mt_pymemos, key, &memo->head);
  return memo;
}
