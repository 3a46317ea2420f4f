/* Memory of our own for what a recording looks up again, empty when it starts. The kernel wipes it in forked children,
 * so that a fork copies nothing of it, and a child that records has it at once. */
#pragma once

#include <stddef.h>

/* Zeroed by its owner, a static variable. */
struct mt_table {
  void *at; /* NULL: there is none */
  size_t size;
  unsigned number;
};

/* An empty table for a recording that starts now; NULL if there is no memory. */
void *mt_table_start(struct mt_table *table, size_t size);

/* Gives it back. */
void mt_table_end(struct mt_table *table);
