/* The shortest paths from the program's names to some of its objects, along references as the garbage collector sees
 * them (tp_traverse): objects are visited once, no code of the program's runs, and no list of all objects is made.
 * Internal to the adapters. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool mt_pypaths_find(void);

/* ways(wanted, roots, visits, milliseconds, last) -> (list of paths, visits), or None where the tracked objects cannot
 * be visited. Wanted and roots are lists; roots after a None are used for what those before it do not reach. A path is
 * a list: enum mt_pypath_kind, how many references from objects with a name lead to the wanted one, then the objects on
 * the path to it, which are missing where the search ended before. At most visits references are followed, and none
 * once the time is over. What only objects of the type last (or None) lead to is reached through these; a path that
 * leads elsewhere is preferred, even if longer. */
void *mt_pypaths(void *self, void *arguments);

enum mt_pypath_kind {
  MT_PATH_NAMED,   /* from one of the roots */
  MT_PATH_FOREIGN, /* from an object with a reference that no tracked object accounts for, such as one of C++ code */
  MT_PATH_GARBAGE, /* only unreachable objects refer to it: the collector will free it */
  MT_PATH_UNKNOWN, /* the search ended before that was known */
};
