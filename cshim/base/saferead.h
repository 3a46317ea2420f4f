/* Reads of memory that may not be there. Cold: one system call each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the system lets the process read itself so. Once, before the first peek; false in a process whose own filter
 * might end it over the call. */
bool mt_safe_read_possible(void);

/* Copies size bytes from address. False if any of them cannot be read. errno stays. */
bool mt_safe_read(void *to, uintptr_t address, size_t size);
