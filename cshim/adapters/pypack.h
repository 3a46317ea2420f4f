/* Operations of the scripts on many objects at once, in C: for ten thousand modules and their tensors each microsecond
 * counts. They call the framework's own functions, which the script passes, and no code of the program. Internal to the
 * adapters. */
#pragma once

#include <stdbool.h>

bool mt_pypack_find(void);

/* pack((category, names, objects, classes, calls)) -> (bytes, list): a row for each object of a list
 * (cshim/spool/namerow.h), named by the list of names. An object whose class is none of the classes, if there are any,
 * or for which a call fails, or that begins within a storage, has an empty row instead, which names nothing, and its
 * index in the returned list. calls: () for rows with objects only; (numel, element_size) for tensors whose address
 * comes later; (numel, element_size, is_cuda, data_ptr, storage_offset), where tensors without memory on a device have
 * empty rows, too. With (category, names, ...) of different lengths the shorter list counts. */
void *mt_pypack(void *self, void *arguments);

/* identities(list) -> bytes: of each object in 64 bits. */
void *mt_pypack_identities(void *self, void *list);

/* same((lists, identities)) -> int: whether the lists of a list have these objects, one list after the other; 0 for
 * what is no list. Makes nothing but its answer. */
void *mt_pypack_same(void *self, void *arguments);

/* unchanged((optimizer, identities, size, "param_groups", "params", "state")) -> int: whether the lists of parameters
 * in its groups have these objects, one list after the other, and its state is a dictionary of that size. 0 also where
 * its class has an attribute of one of these names. Calls no function of the program's and creates nothing but its
 * result. */
void *mt_pypack_unchanged(void *self, void *arguments);

/* addresses((tensors, data_ptr, of)) -> bytes: what data_ptr gives for each tensor, or, unless of is None, for what
 * that function gives for it; 0 where it gives None. None instead of bytes if a call fails. */
void *mt_pypack_addresses(void *self, void *arguments);
