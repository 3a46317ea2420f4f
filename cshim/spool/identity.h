/* Which process this is, so that a spool can be told to belong to a living one: a process id alone comes again. */
#pragma once

#include <stdbool.h>

#include "spool.h"

/* Fills in pid, start time, boot and pid namespace. */
void mt_identity_fill(struct mt_spool_header *header);

/* Whether the process that wrote the header may still be there. One in another pid namespace may. After an exec it is:
 * what the earlier program left is not to be replaced by its successor. A header of another boot is of a dead process,
 * or of another machine. */
bool mt_identity_is_alive(const struct mt_spool_header *header);
