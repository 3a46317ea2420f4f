#define _GNU_SOURCE
/* The public tag API: include/memtrace.h documents each function. Tags may be pushed before the first CUDA call; until
 * then a thread keeps their text only, and ids are assigned when recording starts. */
#define MEMTRACE_IMPLEMENTATION
#include "include/memtrace.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/thread.h"
#include "record/early.h"
#include "record/tag.h"
#include "spool/dict.h"
#include "spool/ring.h"

_Static_assert(MT_TAG_DEPTH == MEMTRACE_TAG_DEPTH_MAX, "the header's promise");
_Static_assert(sizeof ((struct mt_tags *)0)->path >= MEMTRACE_TAG_PATH_MAX, "the header's promise");

static uint16_t end_of(const struct mt_tags *t, uint32_t levels) { return levels ? t->length[levels - 1] : 0; }
static uint32_t id_of(const struct mt_tags *t, uint32_t levels) { return levels ? t->id[levels - 1] : 0; }

/* NVTX names are often made up anew for every step; a path that holds one may not use up the dictionary. */
static uint32_t path_id(const struct mt_tags *t, uint32_t levels) {
  for (uint32_t i = 0; i < levels; i++)
    if (t->owner[i] != MT_TAG_API) return mt_dict_intern_limited(MT_DICT_STRING, t->path, end_of(t, levels));
  return mt_dict_intern(MT_DICT_STRING, t->path, end_of(t, levels));
}

/* Ids of the levels from the given one on. A path that finds no room has its parent's id. */
static void name_from(struct mt_thread *self, uint32_t level) {
  struct mt_tags *t = &self->tags;
  for (uint32_t i = level; i < t->depth; i++) {
    uint32_t parent = id_of(t, i), id = end_of(t, i + 1) == end_of(t, i) ? parent : path_id(t, i + 1);
    t->id[i] = id ? id : parent;
  }
  self->tag = id_of(t, t->depth);
}

void mt_tag_reintern(struct mt_thread *self) { name_from(self, 0); }

/* Appends ".name" to the thread's path and interns it; a level that cannot be honoured keeps its parent's path. */
static int extend(struct mt_thread *self, uint32_t level, const char *name, size_t size) {
  struct mt_tags *t = &self->tags;
  uint16_t parent = end_of(t, level), used = parent;
  t->length[level] = used;
  t->id[level] = self->tag;
  if (!size) return MEMTRACE_ERR_NAME;
  if (used + 1 + size > sizeof t->path) return MEMTRACE_ERR_FULL;
  if (used) t->path[used++] = '.';
  memcpy(t->path + used, name, size);
  t->length[level] = (uint16_t)(used + size);
  if (!mt_thread_recording(self)) return MEMTRACE_OK;
  uint32_t id = path_id(t, level + 1);
  if (!id) {
    t->length[level] = parent;
    return MEMTRACE_ERR_FULL;
  }
  self->tag = t->id[level] = id;
  return MEMTRACE_OK;
}

/* Where the owner's levels beyond the stored ones are counted, or NULL: more owners than entries are that deep at once.
 */
static uint32_t *unstored(struct mt_tags *t, uint32_t owner, bool may_add) {
  if (owner == MT_TAG_API) return &t->unstored[0].count;
  uint32_t unused = 0;
  for (uint32_t i = 1; i < MT_TAG_UNSTORED_OWNERS; i++) {
    if (t->unstored[i].count && t->unstored[i].owner == owner) return &t->unstored[i].count;
    if (!t->unstored[i].count && !unused) unused = i;
  }
  if (!may_add || !unused) return NULL;
  t->unstored[unused].owner = owner;
  return &t->unstored[unused].count;
}

/* While levels are missing from the stack none is stored above them, so that an owner's latest level is always among
 * the missing ones first. */
static int push(struct mt_thread *self, uint32_t owner, const char *name, size_t size) {
  struct mt_tags *t = &self->tags;
  uint32_t level = t->depth;
  if (level < MT_TAG_DEPTH && !t->beyond) {
    t->owner[level] = owner;
    int result = extend(self, level, name, size);
    t->depth = level + 1; /* not one more: a signal handler may have pushed meanwhile */
    return result;
  }
  uint32_t *count = unstored(t, owner, true);
  if (count) {
    ++*count;
    t->beyond++;
  }
  return MEMTRACE_ERR_DEPTH;
}

/* Takes a level out of the middle: the names above it close up. */
static void cut(struct mt_thread *self, uint32_t level) {
  struct mt_tags *t = &self->tags;
  uint16_t from = end_of(t, level), to = t->length[level], end = end_of(t, t->depth);
  if (!from && to && end > to) to++; /* what follows is now first: its dot goes too */
  memmove(t->path + from, t->path + to, end > to ? end - to : 0);
  for (uint32_t i = level; i + 1 < t->depth; i++) {
    t->owner[i] = t->owner[i + 1];
    t->length[i] = t->length[i + 1] > to ? (uint16_t)(t->length[i + 1] - (to - from)) : from;
  }
  t->depth--;
  if (mt_thread_recording(self)) name_from(self, level);
}

static void pop(struct mt_thread *self, uint32_t owner) {
  struct mt_tags *t = &self->tags;
  uint32_t *count = t->beyond ? unstored(t, owner, false) : NULL;
  if (count && *count) {
    --*count;
    t->beyond--;
    return;
  }
  uint32_t level = t->depth;
  while (level && t->owner[level - 1] != owner) level--;
  if (!level--) return;
  if (level + 1 < t->depth) {
    cut(self, level);
  } else {
    t->depth = level;
    self->tag = id_of(t, level);
  }
}

void mt_tag_push(uint32_t owner, const char *name, size_t size) {
  struct mt_thread *self = mt_thread_idle();
  if (self) push(self, owner, name, size);
}

void mt_tag_pop(uint32_t owner) {
  if (mt_self) pop(mt_self, owner);
}

static size_t name_size(const char *name) {
  size_t n = name ? strnlen(name, MEMTRACE_NAME_MAX + 1) : 0;
  return n > MEMTRACE_NAME_MAX ? 0 : n;
}

MT_EXPORT int memtrace_tag_push(const char *name) {
  int error = errno;
  struct mt_thread *self = mt_thread_idle();
  if (!self) return MEMTRACE_ERR_FULL;
  int result = push(self, MT_TAG_API, name, name_size(name));
  errno = error;
  return result;
}

MT_EXPORT void memtrace_tag_pop(void) {
  int error = errno;
  if (mt_self) pop(mt_self, MT_TAG_API);
  errno = error;
}

static void note(uint8_t kind, uint64_t number, uint64_t name) {
  struct mt_thread *self = mt_thread_recording_now();
  if (!self && !name) mt_early_add(kind, number, NULL, 0);
  struct mt_record *r = self ? mt_record_open(self, kind) : NULL;
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

static void flush_early(uint8_t kind, uint64_t number, const char *name, size_t size) {
  uint32_t id = size ? mt_dict_intern(MT_DICT_STRING, name, size) : 0;
  if (id || !size) note(kind, number, id);
}

void mt_tag_flush_early(void) { mt_early_flush(flush_early); }

uint32_t mt_tag_mark(const char *name, size_t size) {
  if (!size || !mt_thread_recording_now()) return 0;
  uint32_t id = mt_dict_intern_limited(MT_DICT_STRING, name, size);
  if (id) note(MT_MARK, 0, id);
  return id;
}

uint32_t mt_tag_text(const char *text, size_t size) {
  return mt_thread_recording_now() ? mt_dict_intern_limited(MT_DICT_STRING, text, size) : 0;
}

void mt_tag_mark_id(uint32_t name) { note(MT_MARK, 0, name); }

MT_EXPORT void memtrace_mark(const char *name) {
  int error = errno;
  size_t size = name_size(name);
  if (size && mt_thread_recording_now()) {
    uint32_t id = mt_dict_intern(MT_DICT_STRING, name, size);
    if (id) note(MT_MARK, 0, id);
  } else if (size) {
    mt_early_add(MT_MARK, 0, name, size);
  }
  errno = error;
}

MT_EXPORT void memtrace_step(uint64_t n) { note(MT_STEP, n, 0); }

MT_EXPORT void memtrace_epoch(uint64_t n) { note(MT_EPOCH, n, 0); }

MT_EXPORT int memtrace_active(void) { return !mt_config.disabled && !mt_recorder_is_off(); }
