/* The mapped spool file and its growth. Space is given by posix_fallocate before the first store: a store into a hole
 * on a full disk is SIGBUS in the program's own thread. */
#pragma once

#include <stdbool.h>

#include "spool.h"
#include "spool/output.h"

/* Beyond its first size the spool is mapped piece by piece: a process's address space may be limited, and few processes
 * ever need the room. */
#define MT_EXTENT_SEGMENTS 1024u
#define MT_EXTENT_SIZE ((uint64_t)MT_EXTENT_SEGMENTS * MT_SEGMENT_SIZE)
#define MT_EXTENTS_MAX 4096u

struct mt_region {
  char *base; /* NULL while no spool is mapped */
  uint64_t size;
  uint64_t inode, device, owner; /* of the spool file, to know it again when it grows and is drained */
  uint64_t index_ready; /* bytes of each growing part that have disk space allocated */
  uint64_t data_ready;
  uint64_t rings_ready;
  uint64_t segments_ready;
  uint32_t rings_retired; /* retired by ended threads: some of them may be free */
  uint32_t segments_first; /* those that lie in the mapping at base: of the header, but not for the program to change */
  bool extended;           /* there are some: the list is long, and most processes never read it */
  char *extents[MT_EXTENTS_MAX]; /* the mappings of later segments, MT_EXTENT_SEGMENTS each; NULL until needed */
  char real_path[MT_PATH_MAX]; /* of the spool, links resolved */
  struct mt_output output;
};

extern struct mt_region mt_region;

static inline struct mt_spool_header *mt_header(void) { return (struct mt_spool_header *)mt_region.base; }
static inline struct mt_ring *mt_rings(void) { return (struct mt_ring *)(mt_region.base + mt_header()->rings_offset); }
static inline struct mt_index_entry *mt_index(void) {
  return (struct mt_index_entry *)(mt_region.base + mt_header()->index_offset);
}
static inline char *mt_data(void) { return mt_region.base + mt_header()->data_offset; }
/* Of a segment after mt_region_ensure_segment. */
static inline struct mt_segment_head *mt_segment(uint32_t number) {
  uint32_t index = number - 1, first = mt_region.segments_first;
  char *start = mt_region.base + mt_header()->segments_offset;
  if (index >= first) {
    index -= first;
    start = __atomic_load_n(&mt_region.extents[index / MT_EXTENT_SEGMENTS], __ATOMIC_ACQUIRE);
    index %= MT_EXTENT_SEGMENTS;
  }
  return (struct mt_segment_head *)(start + (uint64_t)index * MT_SEGMENT_SIZE);
}

/* Creates and maps this process's spool. Returns 0, or -1 with errno set and *what naming the step. */
int mt_region_create(const char **what);

/* Resets the parent's spool in a forked child. */
void mt_region_reset(void);

/* Makes sure that [offset, offset + size) of the file has disk space; *ready is the part's high-water mark in bytes
 * from start. */
bool mt_region_ensure(uint64_t *ready, uint64_t start, uint64_t upto, uint64_t limit);

/* Opens the spool file, if it is still the one that was made. -1 if not. */
int mt_region_open(void);

/* Gives space to one segment and returns true if it may be stored to. */
bool mt_region_ensure_segment(uint32_t number);

/* How far the drainer's start has come; set by process/boot.c. Whether it still runs is in the spool's header. */
enum mt_drainer { MT_DRAINER_NONE, MT_DRAINER_BOOTS, MT_DRAINER_BOOTED };
extern uint32_t mt_drainer;

/* Whether a drainer is starting or running, so that room is worth a wait. */
static inline bool mt_draining(void) {
  return __atomic_load_n(&mt_drainer, __ATOMIC_ACQUIRE) != MT_DRAINER_NONE &&
         mt_header()->drain_state != MT_DRAINER_FAILED;
}
