/* Interns native stacks: addresses -> dictionary id. Process-wide, lock-free, append-only. */
#pragma once

#include <stdint.h>

/* The dictionary id of a stack: its end (enum mt_stack_end), then count addresses. Written at first sight, together
 * with the modules that it runs through. 0 when the dictionary or the table is full (counted). */
uint32_t mt_native_intern(const uint64_t *stack, unsigned count);

/* From now on the same addresses are another stack: a reader resolves them by the modules that were written before it.
 */
void mt_native_invalidate(void);

/* A fresh table for a fresh spool. Returns 0, or -1 when memory is refused. */
int mt_native_start(void);
