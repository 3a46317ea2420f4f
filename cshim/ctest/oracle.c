#define _GNU_SOURCE
#include "oracle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool oracle_open(struct oracle *o, const char *path) {
  struct stat s;
  memset(o, 0, sizeof *o);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &s) || s.st_size < (off_t)sizeof(struct mt_spool_header)) return close(fd), false;
  o->size = (size_t)s.st_size;
  o->base = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (o->base == MAP_FAILED) return false;
  bool good = oracle_attach(o, o->base, o->size);
  if (!good) oracle_close(o);
  return good;
}

bool oracle_attach(struct oracle *o, void *base, size_t size) {
  struct mt_spool_header *h = base;
  *o = (struct oracle){base, size, h};
  return !memcmp(h->magic, MT_SPOOL_MAGIC, sizeof MT_SPOOL_MAGIC) && h->version == MT_SPOOL_VERSION &&
         h->record_size == 64 && h->segment_size == 16384 && h->file_size <= o->size && h->rings_offset >= sizeof *h &&
         h->index_offset >= h->rings_offset + (uint64_t)h->rings_max * 128 &&
         h->data_offset >= h->index_offset + (uint64_t)h->index_max * 16 &&
         h->segments_offset >= h->data_offset + h->data_max &&
         h->file_size == h->segments_offset + (uint64_t)h->segments_first * 16384 &&
         h->segments_max >= h->segments_first;
}

void oracle_close(struct oracle *o) {
  if (o->base) munmap(o->base, o->size);
  o->base = NULL;
}

static struct mt_ring *ring_at(const struct oracle *o, uint32_t i) {
  return (struct mt_ring *)(o->base + o->header->rings_offset) + i;
}

static struct mt_segment_head *segment_at(const struct oracle *o, uint32_t number) {
  if (!number || number > o->header->segments_max || o->header->segments_offset + (uint64_t)number * 16384 > o->size)
    return NULL;
  return (struct mt_segment_head *)(o->base + o->header->segments_offset + (uint64_t)(number - 1) * 16384);
}

struct list {
  struct oracle_record *items;
  size_t count, room;
};

static void append(struct list *l, const struct mt_record *r, uint64_t seq, uint32_t ring) {
  if (l->count == l->room) {
    l->room = l->room ? 2 * l->room : 1024;
    l->items = realloc(l->items, l->room * sizeof *l->items);
    if (!l->items) abort();
  }
  struct oracle_record *item = &l->items[l->count++];
  item->record = *r;
  item->record.seq = seq;
  item->ring = ring;
}

/* Walks ring i from its read position to its end; *segment and *slot become where the next record will be. */
static void walk(const struct oracle *o, uint32_t i, struct list *l, uint32_t *segment, uint32_t *slot) {
  struct mt_ring *ring = ring_at(o, i);
  *segment = __atomic_load_n(&ring->first_segment, __ATOMIC_ACQUIRE);
  *slot = 1;
  if (ring->read_segment) *segment = ring->read_segment, *slot = ring->read_slot;
  struct mt_segment_head *head;
  while ((head = segment_at(o, *segment))) {
    if (*slot == MT_SEGMENT_SLOTS) {
      uint32_t next = __atomic_load_n(&head->next, __ATOMIC_ACQUIRE);
      if (!next) return;
      *segment = next;
      *slot = 1;
      continue;
    }
    struct mt_record *r = (struct mt_record *)head + *slot;
    uint64_t seq = __atomic_load_n(&r->seq, __ATOMIC_ACQUIRE);
    if (!seq) return;
    append(l, r, seq, i);
    ++*slot;
  }
}

static int by_number(const void *a, const void *b) {
  uint64_t x = ((const struct oracle_record *)a)->record.seq, y = ((const struct oracle_record *)b)->record.seq;
  return x < y ? -1 : x > y;
}

size_t oracle_records(const struct oracle *o, struct oracle_record **records) {
  struct list l = {0};
  uint32_t segment, slot, used = __atomic_load_n(&o->header->rings_used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used; i++) walk(o, i, &l, &segment, &slot);
  if (l.count) qsort(l.items, l.count, sizeof *l.items, by_number);
  *records = l.items;
  return l.count;
}

static void give_back(struct oracle *o, uint32_t number) {
  struct mt_segment_head *head = segment_at(o, number);
  uint64_t *list = &o->header->free_segments, old = __atomic_load_n(list, __ATOMIC_RELAXED), want;
  memset((char *)head + sizeof *head, 0, 16384 - sizeof *head);
  __atomic_store_n(&head->next, 0, __ATOMIC_RELAXED);
  do {
    __atomic_store_n(&head->free_next, (uint32_t)old, __ATOMIC_RELAXED);
    want = ((old >> 32) + 1) << 32 | number;
  } while (!__atomic_compare_exchange_n(list, &old, want, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  __atomic_add_fetch(&o->header->segments_free, 1, __ATOMIC_RELAXED);
}

static void drain_ring(struct oracle *o, uint32_t i, struct list *l) {
  struct mt_ring *ring = ring_at(o, i);
  bool dead = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) == MT_RING_DEAD;
  uint32_t from = ring->read_segment ? ring->read_segment : __atomic_load_n(&ring->first_segment, __ATOMIC_ACQUIRE),
           segment, slot;
  if (!from) return;
  walk(o, i, l, &segment, &slot);
  while (from != segment) {
    uint32_t next = segment_at(o, from)->next;
    give_back(o, from);
    from = next;
  }
  ring->read_segment = segment;
  ring->read_slot = slot;
  if (!dead) return;
  give_back(o, segment);
  ring->read_segment = ring->read_slot = 0;
  __atomic_store_n(&ring->first_segment, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&ring->state, MT_RING_FREE, __ATOMIC_RELEASE);
}

size_t oracle_drain(struct oracle *o, struct oracle_record **records) {
  struct list l = {0};
  uint32_t used = __atomic_load_n(&o->header->rings_used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used; i++) drain_ring(o, i, &l);
  if (l.count) qsort(l.items, l.count, sizeof *l.items, by_number);
  *records = l.items;
  return l.count;
}

const void *oracle_entry(const struct oracle *o, uint32_t id, enum mt_dict_kind kind, uint32_t *length) {
  if (!id || id > o->header->index_max) return NULL;
  const struct mt_index_entry *entry = (const struct mt_index_entry *)(o->base + o->header->index_offset) + (id - 1);
  if (__atomic_load_n(&entry->kind, __ATOMIC_ACQUIRE) != kind || entry->offset + entry->length > o->header->data_max)
    return NULL;
  *length = entry->length;
  return o->base + o->header->data_offset + entry->offset;
}

bool oracle_text_is(const struct oracle *o, uint32_t id, const char *text) {
  uint32_t length;
  const char *have = oracle_entry(o, id, MT_DICT_STRING, &length);
  return have && length == strlen(text) && !memcmp(have, text, length);
}

unsigned oracle_entries(const struct oracle *o, uint32_t kind) {
  const struct mt_index_entry *entries = (const struct mt_index_entry *)(o->base + o->header->index_offset);
  unsigned n = 0;
  for (uint32_t i = 0; i < o->header->index_used; i++) n += kind ? entries[i].kind == kind : entries[i].kind != 0;
  return n;
}

uint64_t oracle_lost(const struct oracle *o) {
  uint64_t lost = 0;
  for (uint32_t i = 0; i < o->header->rings_used; i++) {
    const struct mt_ring *ring = ring_at(o, i);
    lost +=
        __atomic_load_n(&ring->lost_others, __ATOMIC_RELAXED) + __atomic_load_n(&ring->lost_frees, __ATOMIC_RELAXED);
  }
  return lost;
}
