/* The functions that the adapters' scripts call inside the interpreter:
 *
 *   epoch() -> int                    of the recording; what intern returned holds as long as this is the same. 0: none
 *   intern(str) -> int                number of a name, 0 where there is no room
 *   emit(bytes)                       names of memory and objects (cshim/spool/namerow.h)
 *   emit_at(bytes, bytes)             the same, with the rows' addresses apart
 *   pack((category, names, objects, classes, calls)) -> (bytes, list)
 *                                     rows of many objects, and those that it has none for (cshim/adapters/pypack.h)
 *   identities(list) -> bytes         the addresses of its objects
 *   same((lists, identities)) -> int  whether lists have these objects, one after the other
 *   unchanged((optimizer, identities, size, "param_groups", "params", "state")) -> int
 *                                     whether its groups have these parameters and its state that size
 *   addresses((tensors, data_ptr, of)) -> bytes
 *                                     of tensors, or of what a function returns for them
 *   fielded(list) -> list of int      the indices of the objects that have attributes of their own; creates no
 *                                     dictionary (cshim/python/pyfields.h)
 *   gradients((tensors, grad, frames, collector, folders)) -> list
 *                                     of tensors, unless another thread may be writing them
 *                                     (cshim/adapters/pygradient.h)
 *   account(bytes)                    keeps what the framework itself counts of its memory, in a form of its own; the
 *                                     latest counts
 *   instances((list, type)) -> list   the objects of the list that are instances of the type or of a subtype; calls
 *                                     no method of theirs
 *   all_instances(type) -> list       the same of all objects that the garbage collector tracks; both take a tuple of
 *                                     up to eight types as well
 *   variables((frame, count)) -> list the first variables of a running function, in the order of its code's
 *                                     co_varnames, co_cellvars, co_freevars; None from Python 3.13 on, where f_locals
 *                                     is a view (PEP 667); before, f_locals would keep alive what the function drops
 *   quietly(function) -> callable     calls the function without the program's tracers seeing it, and lets no
 *                                     exception of the adapter's out: for everything that the program is to call
 *   contain(exception)                in every "except": counts it, or raises it again if the program's signal
 *                                     handlers raised it
 *   count_failure() -> int            counts one more failure; how many there were
 *   schedule(milliseconds)            has the script's report called after that time; 0 cancels it
 *   link()                            records which operators' backward runs (cshim/adapters/backward.h)
 *   record_function(bool) -> int      sets PyTorch's switch of operator observers for this thread, and returns what it
 *                                     was (cshim/elf/recordfunction.h)
 *
 * Internal to the adapters. */
#pragma once

#include <stdbool.h>

#include "adapters/adapter.h"

bool mt_pyfunctions_find(void);

/* Puts the functions into a framework's namespace. With the interpreter's lock; false leaves an exception. */
bool mt_pyfunctions_add(void *globals, enum mt_framework framework);
