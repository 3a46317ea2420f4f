/* The calling thread's switch of PyTorch's operator observers, such as its profiler: at::enableRecordFunction
 * (aten/src/ATen/record_function.h). */
#pragma once

#include <stdbool.h>

/* Sets it, and returns what it was; always true where this PyTorch has no such switch. */
bool mt_record_function_set(bool enabled);
