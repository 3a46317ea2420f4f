/* Which loaded object holds a code address, and where its .eh_frame_hdr is: by _dl_find_object, which takes no lock, or
 * from a snapshot before glibc 2.35. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "elf/frametable.h"

/* False if no object holds the address. The table's header is NULL for an object without one. Async-signal-safe, never
 * blocks. */
bool mt_loaded_find(uintptr_t pc, struct mt_frame_table *table);

/* The code before the address, if that many bytes of it lie in one segment of an object that is loaded to be executed
 * and can be read, else NULL. */
const uint8_t *mt_loaded_code(uintptr_t pc, uintptr_t before);

/* True where the answers come from the snapshot: an object that was loaded since is not known yet. */
bool mt_loaded_is_snapshot(void);

/* Takes a new snapshot, with the loader's lock. Does nothing where _dl_find_object exists. */
void mt_loaded_refresh(void);

/* The same if a look-up has missed since the last snapshot. */
void mt_loaded_refresh_missed(void);

/* How much address space this library takes, or only memory that it may write to. */
uint64_t mt_loaded_own(bool all);

/* For tests: use the snapshot also where there is no need to. */
extern bool mt_loaded_forced;
