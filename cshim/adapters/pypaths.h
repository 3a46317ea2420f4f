/* The shortest ways from the program's names to some of its objects, by the collector's own view of what refers to what
 * (tp_traverse): objects are visited once, nothing of the program's runs, and no list of all objects is made. Internal
 * to the adapters. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool mt_pypaths_find(void);

/* ways(wanted, roots, visits, milliseconds) -> (list of ways, visits), or None where the objects cannot be had. Wanted
 * and roots are lists; roots behind a None count for what those before it do not lead to. A way is a list: how the
 * object is held, then the objects on the way to it, which are missing where the search ended before. No more
 * references than visits are looked at, and none once the time is over. */
void *mt_pypaths(void *self, void *arguments);

enum mt_pypath_kind {
  MT_PATH_NAMED,   /* from one of the roots */
  MT_PATH_FOREIGN, /* from an object that something else than objects refers to, such as code in C++ */
  MT_PATH_GARBAGE, /* only objects that nothing refers to from outside refer to it: the collector frees it */
  MT_PATH_UNKNOWN, /* the search ended before that was known */
};
