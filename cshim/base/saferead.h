/* Reads of memory that may be unmapped, by process_vm_readv(2): one system call each, for cold paths. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether process_vm_readv works on the process itself. Once, before the first read; false in a process whose own
 * seccomp filter might kill it over the call. */
bool mt_safe_read_possible(void);

/* Copies size bytes from address. False if any of them cannot be read. errno stays. */
bool mt_safe_read(void *to, uintptr_t address, size_t size);
