/* Another C library than glibc: there is no CUDA for it, so nothing is recorded, but its programs must load this
 * library and run. Every symbol of glibc's own is therefore a weak one here. */
#pragma once

#include <stdbool.h>

bool mt_foreign_libc(void);

/* Finds a function of that name in the first object that is not this one, without the help of dlvsym, which is glibc's
 * own. NULL if there is none. */
void *mt_foreign_find(const char *name);
