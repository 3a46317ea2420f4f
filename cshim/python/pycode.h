/* Python code objects: each is copied into the dictionary when it is first met. Internal to the Python walker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "python/python.h"

#define MT_PY_MODULE_CALLS 4u

/* Code objects whose first argument is the module that is called, as the walk knows them. code is stored last; 0: none
 * so far. */
struct mt_module_call {
  uint64_t code, identity;
};
extern struct mt_module_call mt_module_calls[MT_PY_MODULE_CALLS];
extern uint32_t mt_module_calls_known; /* how often one was added */

/* Forgets what was written into the last spool. */
void mt_pycode_start(void);

/* The dictionary id of the code object, written at first sight. caller is the code object that called it, 0 if none: it
 * tells how a framework's frames belong together. 0 when the dictionary is full, or when it is no code object: then the
 * interpreter is off. *passing: the object may go and another one come to its address with the same identity, so that
 * whoever remembers the id has to ask mt_pycode_matches. *module_call: its first argument is the module that is called.
 */
uint32_t mt_pycode_intern(uint64_t code, uint64_t identity, uint64_t caller, bool *transient, bool *module_call);

/* Whether the code object that lies there now is the dictionary's entry id. */
bool mt_pycode_matches(uint64_t code, uint64_t identity, uint32_t id);

/* Byte offset into the code object's bytecode of a frame's position, 0 before its first instruction. */
uint32_t mt_pycode_offset(uint64_t code, uint64_t position);
