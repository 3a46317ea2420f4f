/* Identifies the process that owns a spool: process ids are reused. */
#pragma once

#include <stdbool.h>

#include "spool.h"

/* Fills in pid, start time, boot and pid namespace. */
void mt_identity_fill(struct mt_spool_header *header);

/* Whether the process that wrote the header may still be running. One in another pid namespace may. After an exec it
 * is: the successor must not replace what the earlier program left. A header of another boot is of a dead process, or
 * of another machine. */
bool mt_identity_is_alive(const struct mt_spool_header *header);
