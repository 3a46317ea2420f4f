#include "python/pymemo.h"

/* There is at most one shim frame between two others. */
#define MT_PYMEMO_MAX (2 * MT_PYTHON_MAX)

struct mt_memo_table mt_pymemos;

struct here {
  struct mt_pywalk *walk;
  uintptr_t frame;
};

static bool matches(const struct mt_stack_memo *memo, const void *now) {
  const struct here *here = now;
  const struct mt_pymemo *known = (const void *)memo;
  switch ((enum mt_pyshape)here->walk->layout->shape) {
    case MT_PY_OBJECTS: return mt_pymemo_matches(known, here->walk, here->frame, MT_PY_OBJECTS);
    case MT_PY_FLAGGED: return mt_pymemo_matches(known, here->walk, here->frame, MT_PY_FLAGGED);
    case MT_PY_SHIMMED: return mt_pymemo_matches(known, here->walk, here->frame, MT_PY_SHIMMED);
  }
  return false;
}

/* The module that the frame calls goes to *module, 0 if it calls none. */
static struct mt_pymemo_frame read_frame(struct mt_pywalk *w, uintptr_t frame, uint64_t *module) {
  enum mt_pyshape shape = w->layout->shape;
  struct mt_pymemo_frame known = {.frame = frame,
                                  .code = mt_pyframe_word(w, frame + w->layout->frame_code, false),
                                  .entry = mt_pymemo_entry(w, frame, shape)};
  *module = 0;
  if (shape == MT_PY_SHIMMED && known.entry) return known;
  uintptr_t code = known.code & ~MT_PY_FLAGS;
  known.position = mt_pymemo_position(w, frame, code, shape);
  known.stamp = mt_pymemo_stamp(w, code);
  *module = mt_pyframe_called_module(
      w, frame, &(struct mt_pyraw){.code = code, .identity = mt_pyframe_identity(w, code, false)}, false);
  return known;
}

static uintptr_t caller_of(struct mt_pywalk *w, uintptr_t frame) {
  return mt_pyframe_word(w, frame + w->layout->frame_back, false);
}

static struct mt_pymemo *make(struct mt_pywalk *w, uintptr_t innermost, uint32_t id, uint32_t generation) {
  uint64_t module;
  unsigned count = 0, modules = 0;
  for (uintptr_t frame = innermost; frame && count <= MT_PYMEMO_MAX; frame = caller_of(w, frame), count++) {
    read_frame(w, frame, &module);
    modules += module != 0;
  }
  if (count > MT_PYMEMO_MAX) return NULL;
  struct mt_pymemo *memo = mt_memo_table_alloc(
      &mt_pymemos, sizeof *memo + count * sizeof *memo->frames + modules * sizeof module, id, generation);
  if (!memo) return NULL;
  uint64_t *next = (uint64_t *)(memo->frames + count), *first = next;
  for (uintptr_t frame = innermost; frame; frame = caller_of(w, frame)) {
    struct mt_pymemo_frame *known = &memo->frames[memo->count++];
    *known = read_frame(w, frame, &module);
    if (!module) continue;
    *next++ = module;
    known->self = (uint16_t)(next - first);
  }
  return memo;
}

struct mt_stack_memo *mt_pymemo_insert(uint64_t key, struct mt_pywalk *w, uintptr_t frame, uint32_t id,
                                       uint32_t generation) {
  struct mt_stack_memo **place;
  struct mt_pymemo *memo =
      (void *)mt_memo_table_find(&mt_pymemos, frame, id, generation, matches, &(struct here){w, frame}, &place);
  if (!memo) {
    if (!place || !(memo = make(w, frame, id, generation))) return NULL;
    __atomic_store_n(place, &memo->head, __ATOMIC_RELEASE);
  }
  mt_memo_table_predict(&mt_pymemos, key, &memo->head);
  return &memo->head;
}
