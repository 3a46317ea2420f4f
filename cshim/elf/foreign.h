/* C libraries other than glibc, such as musl: CUDA does not support them, so nothing is recorded, but programs must be
 * able to load this library and run. Every symbol that only glibc has is therefore weak here. */
#pragma once

#include <stdbool.h>

bool mt_foreign_libc(void);

/* Finds a function of that name in the first object that is not this one, without dlvsym, which only glibc has. NULL if
 * there is none. */
void *mt_foreign_find(const char *name);
