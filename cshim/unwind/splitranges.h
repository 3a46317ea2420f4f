/* Compilers move the parts of a function that they think are hardly ever run away from it, each with unwind information
 * of its own. In interpreters built with a profile that lacks the evaluation loop, that is nearly all of it. */
#pragma once

#include <stdint.h>

#define MT_SPLIT_RANGES 4u

struct mt_code_range {
  uintptr_t start, end;
};

/* Finds the parts of the function [start, end) that lie elsewhere in its object: code that the function jumps into and
 * that jumps back into its middle. Writes at most MT_SPLIT_RANGES and returns how many. Takes a millisecond for a large
 * function: off the hot path. */
unsigned mt_split_ranges(uintptr_t start, uintptr_t end, struct mt_code_range *out);
