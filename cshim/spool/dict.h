/* The spool's append-only dictionary and the interning of what repeats. Ids are index slots, 1-based, one space for all
 * kinds; 0 means none, which is also what a full dictionary answers (counted). Nothing here locks or allocates with
 * malloc. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "spool.h"

struct mt_bytes {
  const void *data;
  size_t size;
};

/* Appends one entry made of the given parts and returns its id, or 0 when the dictionary or the disk is full. */
uint32_t mt_dict_append(enum mt_dict_kind kind, const struct mt_bytes *parts, unsigned count);

/* Counts an entry for which there is no room. Returns 0. */
uint32_t mt_dict_count_lost(void);

/* Returns the id of an equal entry, appending one at first sight. For strings and stacks. */
uint32_t mt_dict_intern(enum mt_dict_kind kind, const void *data, size_t size);

/* The same for texts of which a program may generate any number, such as "step 4711": once half of the dictionary is in
 * use only existing entries are found, so that stacks, modules and threads keep the other half. 0 for new ones
 * (counted). */
uint32_t mt_dict_intern_limited(enum mt_dict_kind kind, const void *data, size_t size);

/* How many frames a new stack may have, wanted or fewer: the fuller the dictionary, the shorter new stacks are, since
 * fewer short ones are distinct. Stacks that were written already keep their length. At least 1: the allocation site is
 * always recorded. */
unsigned mt_dict_depth(unsigned wanted);

/* One key and value about the process. */
void mt_dict_info(const char *key, const void *value, size_t size);

/* Fresh intern table for a fresh spool. Returns 0, or -1 when memory is refused. */
int mt_dict_start(void);
