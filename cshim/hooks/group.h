/* What libraries find in those that were loaded along with them. A library may call a function that none of the
 * libraries it names has: the loader then looks through all that came with the one that was opened. dlsym does that
 * only for the calling library itself, which is not us. */
#pragma once

struct link_map;

/* The first function of that name, other than ours, in an object that something loaded which also loaded the caller;
 * NULL if there is none. Takes the loader's lock. */
void *mt_group_find(const struct link_map *caller, const char *name);
