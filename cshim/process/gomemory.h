/* The memory that the Go runtime's C parts take for it, instead of the C library's way of taking it: see --wrap in the
 * Makefile.
 *
 * A runtime reserves address space by the gigabyte, each of its threads has a stack of 8 MiB, and each that touches the
 * C library's allocator gets 64 MiB of address space for an arena of its own. That is nothing, until the program sets
 * itself a limit on address space or data: then it is the program that gets no more. So stacks are smaller, no thread
 * of the runtime's touches the allocator, and what is only reserved can be given back. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Stack size of the runtime's threads; set by boot.c before the first. */
extern size_t mt_go_stack;

/* Unmaps what the runtime has reserved and does not use. From then on it maps memory at the addresses that it had
 * reserved, if they are still free; if not, or if a limit does not allow it, it cannot go on (goend.h). */
void mt_go_release_memory(void);

/* How much memory it has taken so far, without what is only reserved. */
uint64_t mt_go_memory_held(void);
