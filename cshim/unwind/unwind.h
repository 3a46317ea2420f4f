/* Native call stacks: return address -> cached unwind row from .eh_frame. No locks, no malloc and no dl* calls; memory
 * is read only inside the thread's stack. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/stack.h"
#include "spool.h"

/* Unwinds from the caller of the function that frame belongs to, which must not have realigned its stack. Writes at
 * most depth (1 to MT_NATIVE_MAX) return addresses, innermost first, the first one being frame->caller, and returns how
 * many; *end is why it stopped. In a thread with Python frames it stops after the innermost frame of the interpreter's
 * loop (the last address written), unless whole is set. */
unsigned mt_unwind(const struct mt_frame *frame, const struct mt_stack_bounds *bounds, uint64_t *out, unsigned depth,
                   bool whole, enum mt_stack_end *end);

/* Where native stacks are cut: the code of the interpreter's loop. Set once the interpreter is found; a compiler may
 * have split the loop, so up to eight calls add up; 0, 0: nowhere. */
void mt_unwind_stop_at(uintptr_t start, uintptr_t end);

/* The bounds of the function that holds pc, by its unwind information. False where there is none. */
bool mt_unwind_function(uintptr_t pc, uintptr_t *start, uintptr_t *end);

/* True if a signal handler returns to pc. */
bool mt_unwind_is_handler_return(uintptr_t pc);

/* Invalidates all rows: a library was unloaded, and another one may be mapped at its address. */
void mt_unwind_invalidate(void);

/* Changes whenever a walk through the same words may end elsewhere: libraries were unloaded, the interpreter was found.
 */
extern uint32_t mt_unwind_generation;

/* Prepares for a fresh spool; off the hot path, before the first event. Where the C library lacks _dl_find_object this
 * takes the module snapshot. */
void mt_unwind_start(void);

/* Off the hot path, from the polling thread, every second or so: refreshes the module snapshot if a look-up missed.
 * Does nothing where _dl_find_object exists. */
void mt_unwind_refresh(void);

/* Finds the readable stack that holds sp: cold, from the kernel's list of mappings. False if there is none. */
bool mt_stack_find(uintptr_t sp, struct mt_stack_bounds *bounds);
