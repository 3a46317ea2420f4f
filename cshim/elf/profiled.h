/* Whether PyTorch tells profilers, and whoever else observes operators, of those that the calling thread runs. */
#pragma once

#include <stdbool.h>

/* Sets it, and returns what it was. Where PyTorch has no such switch it is true for ever. */
bool mt_profiled_set(bool told);
