/* The library's scripts and the namespaces that they run in. All with the interpreter's lock; failures may leave an
 * exception. Internal to the adapters. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "python/pyapi.h"

bool mt_pyscript_find(void);

/* A namespace with the builtins. New reference, or NULL. */
void *mt_pyscript_namespace(void);

/* Adds what a script can use. A function keeps its method for as long as it is there, and a reference to self. */
bool mt_pyscript_add_function(void *namespace, struct mt_pymethod *method, void *self);
bool mt_pyscript_add_number(void *namespace, const char *name, uint64_t number);

/* Runs a script from its first line to its last; false if it raised. */
bool mt_pyscript_run(void *namespace, const char *text);
