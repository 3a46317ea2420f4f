/* Evaluates the DWARF expressions that occur in call frame information, symbolically: without a stack. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/unwindrow.h"

/* The expression's value, with first (of base NONE: nothing) on its stack at the start. False for what a struct
 * mt_value cannot hold. */
bool mt_dwarf_expression(const uint8_t *at, uint32_t bytes, uintptr_t pc, struct mt_value first,
                         struct mt_value *value);
