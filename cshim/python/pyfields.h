/* Which objects have attributes of their own. Asking for an object's __dict__ creates one where there was none: that
 * takes the program's memory, and from Python 3.11 on it de-specializes bytecode (PEP 659). Internal to the adapters.
 */
#pragma once

#include <stdbool.h>

bool mt_pyfields_find(void);

/* fielded(list) -> list of int: the places of the objects that have a dictionary, or attributes that would be in one.
 * One may be among them that has neither, where the interpreter's way to keep them is not known. Changes nothing, and
 * runs nothing of the program's. */
void *mt_pyfields(void *self, void *list);
