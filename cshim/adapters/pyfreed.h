/* Which of the program's objects end with some references, as the interpreter and its garbage collector would decide
 * it. Nothing is freed, and no code of the program's runs. Internal to the adapters. */
#pragma once

/* freed(groups, own, kept, visits, milliseconds, type) -> list, or None where it cannot be told. A group is a list: an
 * object, 1 if all of its references end and 0 if one to each does, and objects that it refers to; or None, where
 * functions that run refer to the objects, and how many references are not theirs. For each group there is a pair of
 * lists: the ids of the objects of a type that end if these references do, and of those to which a single reference is
 * left that no object accounts for, as that of C++ code; None where the bounds ended the search. Own is a list of what
 * refers to objects for the search alone. What the list kept has does not end, and neither do classes; what they lead
 * to is not looked at. After mt_pysearch_find(). */
void *mt_pyfreed(void *self, void *arguments);
