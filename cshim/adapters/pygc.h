/* The objects that the garbage collector tracks, without a list of them all: such a list takes and drops a reference to
 * each, which costs three times as much as visiting them, and gc.get_objects raises an audit event. Internal to the
 * adapters. */
#pragma once

#include <stdbool.h>

bool mt_pygc_find(void);

/* Calls each for every tracked object, with the interpreter's lock, until it returns false; it must not create or
 * destroy tracked objects. False if this version's objects cannot be visited, after any number of calls. Leaves no
 * exception. */
bool mt_pygc_visit(bool (*each)(void *object, void *context), void *context);
