/* Lookup tables of a recording, empty when it starts. The kernel wipes them in forked children (MADV_WIPEONFORK), so
 * that a fork copies nothing of them, and a child that records has them at once. */
#pragma once

#include <stddef.h>

/* A static variable of its owner, initially zero. */
struct mt_table {
  void *at; /* NULL: not allocated */
  size_t size;
  unsigned number;
};

/* An empty table for a recording that starts now; NULL if there is no memory. */
void *mt_table_start(struct mt_table *table, size_t size);

/* Frees it. */
void mt_table_end(struct mt_table *table);
