/* Call stacks as deep as a measurement wants them, of functions that differ in the size of their frames and in the
 * registers that they save. */
#pragma once

#include <stdint.h>

/* Calls at_bottom(argument) with levels + 1 more frames on the stack; path chooses the functions, so that two paths are
 * two stacks. */
void frames_descend(unsigned levels, uint64_t path, void (*at_bottom)(void *), void *argument);

/* How many frames the calling function has on its stack, its own included. */
unsigned frames_here(void);
