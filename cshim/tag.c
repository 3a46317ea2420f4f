#define _GNU_SOURCE
/* The public tag API: include/memtrace.h says what each function promises. Tags may be pushed before the first CUDA call; until then a thread keeps their
 * text only, and ids are made when recording starts. */
#define MEMTRACE_IMPLEMENTATION
#include "include/memtrace.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "config.h"
#include "dict.h"
#include "guest.h"
#include "ring.h"
#include "tag.h"

_Static_assert(MT_TAG_DEPTH == MEMTRACE_TAG_DEPTH_MAX, "the header's promise");
_Static_assert(sizeof ((struct mt_tags *)0)->path >= MEMTRACE_TAG_PATH_MAX, "the header's promise");

void mt_tag_rename(struct mt_thread *self) {
  self->tag = 0;
  for (uint32_t i = 0; i < self->tags.depth && i < MT_TAG_DEPTH; i++) {
    uint16_t length = self->tags.length[i];
    if (length) self->tag = mt_dict_intern(MT_DICT_STRING, self->tags.path, length);
    self->tags.id[i] = self->tag;
  }
}

/* Appends ".name" to the thread's path and interns it; a level that cannot be honoured keeps its parent's path. */
static int extend(struct mt_thread *self, uint32_t level, const char *name, size_t size) {
  struct mt_tags *t = &self->tags;
  uint16_t used = level ? t->length[level - 1] : 0;
  t->length[level] = used;
  t->id[level] = self->tag;
  if (used + 1 + size > sizeof t->path) return MEMTRACE_ERR_FULL;
  if (used) t->path[used++] = '.';
  memcpy(t->path + used, name, size);
  t->length[level] = (uint16_t)(used + size);
  if (!mt_thread_recording(self)) return MEMTRACE_OK;
  uint32_t id = mt_dict_intern(MT_DICT_STRING, t->path, t->length[level]);
  if (!id) {
    t->length[level] = level ? t->length[level - 1] : 0;
    return MEMTRACE_ERR_FULL;
  }
  self->tag = t->id[level] = id;
  return MEMTRACE_OK;
}

static size_t name_size(const char *name) {
  size_t n = name ? strnlen(name, MEMTRACE_NAME_MAX + 1) : 0;
  return n > MEMTRACE_NAME_MAX ? 0 : n;
}

MT_EXPORT int memtrace_tag_push(const char *name) {
  int error = errno;
  struct mt_thread *self = mt_thread_idle();
  if (!self) return MEMTRACE_ERR_FULL;
  struct mt_tags *t = &self->tags;
  size_t size = name_size(name);
  uint32_t level = t->depth++;
  int result = level >= MT_TAG_DEPTH ? MEMTRACE_ERR_DEPTH : MEMTRACE_OK;
  if (!result && !size) {
    t->length[level] = level ? t->length[level - 1] : 0;
    t->id[level] = self->tag;
    result = MEMTRACE_ERR_NAME;
  }
  if (!result) result = extend(self, level, name, size);
  errno = error;
  return result;
}

MT_EXPORT void memtrace_tag_pop(void) {
  struct mt_thread *self = mt_self;
  if (!self || !self->tags.depth) return;
  uint32_t depth = --self->tags.depth;
  if (depth < MT_TAG_DEPTH) self->tag = depth ? self->tags.id[depth - 1] : 0;
}

static void note(uint8_t kind, uint64_t number, uint64_t name) {
  struct mt_thread *self = mt_thread_recording_now();
  struct mt_record *r = self ? mt_record_open(self) : NULL;
  if (!r) return;
  uint64_t outer = mt_seq_begin(self), seq = mt_seq_draw();
  memset((char *)r + sizeof r->seq, 0, sizeof *r - sizeof r->seq);
  r->ticks = mt_clock_ticks();
  r->size = number;
  r->name = name;
  r->tag = self->tag;
  r->kind = kind;
  r->device = -1;
  mt_record_commit(self, r, seq);
  mt_seq_end(self, outer);
}

MT_EXPORT void memtrace_mark(const char *name) {
  int error = errno;
  size_t size = name_size(name);
  if (size && mt_thread_recording_now()) {
    uint32_t id = mt_dict_intern(MT_DICT_STRING, name, size);
    if (id) note(MT_MARK, 0, id);
  }
  errno = error;
}

MT_EXPORT void memtrace_step(uint64_t n) { note(MT_STEP, n, 0); }

MT_EXPORT void memtrace_epoch(uint64_t n) { note(MT_EPOCH, n, 0); }

MT_EXPORT int memtrace_active(void) { return !mt_config.disabled && !mt_guest_off(); }
