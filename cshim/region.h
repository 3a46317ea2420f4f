/* The mapped spool file and its growth. Space is given by posix_fallocate before the first store: a store into a hole on a full disk is SIGBUS in the
 * program's own thread. */
#pragma once

#include <stdbool.h>

#include "output.h"
#include "spool.h"

struct mt_region {
  char *base; /* NULL while no spool is mapped */
  uint64_t size;
  uint64_t inode, device, owner; /* of the spool file, to know it again when it grows and is drained */
  uint64_t index_ready; /* bytes of each growing part that have disk space behind them */
  uint64_t data_ready;
  uint64_t rings_ready;
  uint64_t segments_ready;
  char real_path[MT_PATH_MAX]; /* of the spool, links resolved */
  struct mt_output output;
};

extern struct mt_region mt_region;

static inline struct mt_spool_header *mt_header(void) { return (struct mt_spool_header *)mt_region.base; }
static inline struct mt_ring *mt_rings(void) { return (struct mt_ring *)(mt_region.base + mt_header()->rings_offset); }
static inline struct mt_index_entry *mt_index(void) { return (struct mt_index_entry *)(mt_region.base + mt_header()->index_offset); }
static inline char *mt_data(void) { return mt_region.base + mt_header()->data_offset; }
static inline struct mt_segment_head *mt_segment(uint32_t number) {
  return (struct mt_segment_head *)(mt_region.base + mt_header()->segments_offset + (uint64_t)(number - 1) * MT_SEGMENT_SIZE);
}

/* Creates and maps this process's spool. Returns 0, or -1 with errno set and *what naming the step. */
int mt_region_create(const char **what);

/* Forgets the parent's spool in a forked child. */
void mt_region_forget(void);

/* Makes sure that [offset, offset + size) of the file has disk space; *ready is the part's high-water mark in bytes from start. */
bool mt_region_ensure(uint64_t *ready, uint64_t start, uint64_t upto, uint64_t limit);

/* Gives space to one segment and returns true if it may be stored to. */
bool mt_region_ensure_segment(uint32_t number);
