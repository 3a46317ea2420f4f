/* What still refers to the program's CUDA tensors: memtrace.referrers() of the Python package, in a process that need
 * not have it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_referrers {
  uint32_t limit;   /* rows */
  uint32_t visits;  /* most references that are followed */
  uint32_t milliseconds; /* after which no further one is */
  char *text;       /* room for the rows, as internal/control reads them; written with the interpreter's lock */
  size_t room, size;
  uint32_t own_passes; /* backward passes whose threads wait for the search */
  uint32_t pass_ms;    /* how long the search waits for the end of others; while one is under way, what graphs have
                          is not looked at */
  bool goes_on;        /* the program does: what graphs have is not looked at, a pass that does not end ends the
                          search */
  bool brief;          /* the rows have no addresses */
  bool raises, raised; /* Ctrl-C meanwhile is an exception afterwards, else it is lost; whether there was one */
  uint64_t
      seq; /* the last order number before which all tensors that were found were live; 0 while nothing is recorded */
};

/* On a library thread. Waits for the interpreter's lock without a limit; once it has it, calls begin to learn whether
 * the result is still wanted, and returns at once if not. NULL, or why there is no result. */
const char *mt_referrers_find(struct mt_referrers *wanted, bool (*begin)(void));

/* Why the calling thread must not wait for a search: it has the interpreter's lock itself. NULL if it may. */
const char *mt_referrers_unsafe(void);

/* Has the interpreter call a function on its main thread, between two instructions. With the fork lock. False if it
 * will not. */
bool mt_referrers_between(int (*call)(void *));

/* In such a call: whether the program has handlers of signals, which might run in the search, and raise what is lost
 * in it. */
bool mt_referrers_disturbed(void);

/* Calls a function that waits for a search on another thread, without the interpreter's lock, which the calling thread
 * has. */
void mt_referrers_unlocked(void (*wait)(void));
