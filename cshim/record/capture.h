/* The call stacks of an event: captured at the hook, interned, named in the record by two ids. */
#pragma once

#include <stdint.h>

#include "base/thread.h"
#include "unwind/unwind.h"

struct mt_stacks {
  uint32_t native, python; /* dictionary ids, 0 none */
};

/* The stacks of the calling thread from the caller of the hooked function on, whose frame is given: it is read only
 * where a stack lies. kind is the event's (enum mt_kind): frees may be left out. */
struct mt_stacks mt_capture(struct mt_thread *self, const struct mt_frame *frame, uintptr_t caller, uint8_t kind);

/* The calling thread's Python stack, and as its native one an address that is a placeholder for an unknown earlier
 * allocation site. */
struct mt_stacks mt_capture_at(struct mt_thread *self, uintptr_t address);

/* Fresh tables for a fresh spool. Returns 0, or -1 when memory is refused. */
int mt_capture_start(void);

/* A library was unloaded, and with it so many of the modules in stacks: another one may be mapped at their addresses.
 */
void mt_capture_invalidate(unsigned gone);

/* Called by the thread that detects unloaded objects. Registered once, at load. */
void mt_capture_on_unload(void (*listener)(void));
