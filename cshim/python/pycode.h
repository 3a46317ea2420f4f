/* Python code objects: each is copied into the dictionary at its first use. Internal to the Python walker. */
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

/* Clears what was written into the last spool. */
void mt_pycode_start(void);

/* The dictionary id of the code object, written at first sight. caller is the code object that called it, 0 if none: it
 * shows which frames are a framework's. 0 when the dictionary is full, or when it is no code object: then the
 * interpreter is disabled. *transient: the object may be freed and another one with the same identity may take its
 * address, so that users of a cached id must call mt_pycode_matches. *module_call: its first argument is the module
 * that is called. */
uint32_t mt_pycode_intern(uint64_t code, uint64_t identity, uint64_t caller, bool *transient, bool *module_call);

/* Whether the code object that lies there now is the dictionary's entry id. */
bool mt_pycode_matches(uint64_t code, uint64_t identity, uint32_t id);

/* Byte offset into the code object's bytecode of a frame's position, 0 before its first instruction. */
uint32_t mt_pycode_offset(uint64_t code, uint64_t position);
