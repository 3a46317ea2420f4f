/* What scripts of ours can call inside the interpreter:
 *
 *   epoch() -> int                  of the recording; what intern gave holds as long as this is the same. 0: none
 *   intern(str) -> int              number of a name, 0 where there is no room
 *   emit(bytes)                     names of memory and objects (cshim/spool/namerow.h)
 *   emit_at(bytes, bytes)           the same, with the rows' addresses apart
 *   pack((category, names, objects, classes, calls)) -> (bytes, list)    rows of many objects, and those that it has
 * none for (cshim/adapters/pypack.h) identities(list) -> bytes       of its objects same((lists, identities)) -> int
 * whether lists have these objects, one after the other addresses((tensors, data_ptr, of)) -> bytes    of tensors, or
 * of what a function gives for them fielded(list) -> list of int    the places of the objects that have attributes of
 * their own; makes none a dictionary (cshim/python/pyfields.h) gradients((tensors, grad, frames, collector, folders))
 * -> list    of tensors, unless another thread may be writing them (cshim/adapters/pygradient.h) account(bytes) keeps
 * what the framework itself says of its memory, in a form of its own; the latest counts instances((list, type)) -> list
 * those of the objects that are of the type or of one below it; asks no object all_instances(type) -> list     the same
 * of all objects that the collector knows; instead of one type a tuple of up to eight may be given to both
 *   variables((frame, count)) -> list   of a function that runs, in the order of its code's co_varnames, co_cellvars,
 * co_freevars; None from Python 3.13 on, where f_locals is a view; before, it would keep alive what the function lets
 * go quietly(function) -> callable   calls the function so that the program's tracers do not see it, and lets no
 * exception of ours out: for all that the program is to call contain(exception)              in every "except": counts
 * it, or raises it again if the program's signal handlers raised it trouble() -> int                counts one more
 * thing that went wrong again(milliseconds)             has the script's report called after that time; 0 takes it back
 *   link_begin() -> int, link_look(), link_end((first, second)) -> int    the test of cshim/adapters/backward.h
 *
 * Internal to the adapters. */
#pragma once

#include <stdbool.h>

#include "adapters/adapter.h"

bool mt_pyfunctions_find(void);

/* Puts the functions into a framework's namespace. With the interpreter's lock; false leaves an exception. */
bool mt_pyfunctions_add(void *globals, enum mt_framework framework);
