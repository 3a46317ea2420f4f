/* Limits that the program sets itself while a recording goes on. */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

/* Finds the originals of the hooked functions; when the library is loaded, since they may be called where no look-up is
 * possible: between fork and exec. */
void mt_limit_prepare(void);

/* In place of setrlimit, getrlimit and prlimit. */
int mt_limit_set(int resource, const struct rlimit *limit);
int mt_limit_get(int resource, struct rlimit *limit);
int mt_limit_prlimit(pid_t process, int resource, const struct rlimit *limit, struct rlimit *old);

/* prctl with its four arguments, of which PR_SET_TSC takes a counter away that the library reads. */
int mt_limit_prctl(int option, const unsigned long arguments[4]);
