/* The relocations of the sleeping Go half, which tools/patchruntime took away from the loader. */
#pragma once

#include <stdbool.h>

/* Applies them, once in a process and its children, before the runtime starts. False when the system refuses; then no
 * runtime may be started. */
bool mt_relocate_go(void);

/* Whether tools/patchruntime kept the runtime away from the program's signals; otherwise it must not be started. */
bool mt_go_is_quiet(void);
