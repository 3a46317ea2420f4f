/* A thread's stack of tags. The program's own calls and every NVTX domain share it in the order of the calls, and each
 * of them undoes only its own levels. It survives what a thread's recording state does not: the start of recording and
 * a fork. */
#pragma once

#include <stddef.h>

#include "base/thread.h"

#define MT_TAG_API 0u /* owner of the levels that the program's own calls push; others are NVTX domains */

/* Pushes a level for the calling thread, if there is memory for its state. A level that cannot be honoured (no name,
 * too deep, no room) counts all the same and adds nothing to the path. */
void mt_tag_push(uint32_t owner, const char *name, size_t size);

/* Removes the owner's latest level, at whatever depth; does nothing where it has none. */
void mt_tag_pop(uint32_t owner);

/* Records a named moment if this process records already. Returns the id of the name, 0 if nothing was recorded. For
 * names that may be made up without end. */
uint32_t mt_tag_mark(const char *name, size_t size);

/* The id of a text in the present spool, 0 if this process does not record or has no room for it. */
uint32_t mt_tag_text(const char *text, size_t size);

/* The same as mt_tag_mark for a name that has its id. */
void mt_tag_mark_id(uint32_t name);

/* Records the marks, steps and epochs of before recording started, once. For a thread that has just begun to record. */
void mt_tag_flush_early(void);

/* Gives ids in the present spool to the tags that the thread already holds. */
void mt_tag_reintern(struct mt_thread *self);
