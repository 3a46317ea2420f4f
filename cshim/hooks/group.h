/* Symbol look-up in the libraries that were loaded together: the loader searches the local scope of the dlopen that
 * brought a library (dlopen(3), RTLD_LOCAL). dlsym does that only for its caller, which is not this library. */
#pragma once

struct link_map;

/* The first function of that name, other than ours, in an object that something loaded which also loaded the caller;
 * NULL if there is none. Takes the loader's lock. */
void *mt_group_find(const struct link_map *caller, const char *name);
