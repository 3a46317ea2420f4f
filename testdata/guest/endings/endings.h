/* Programs that end, or do what programs do shortly before:  endings MODE. Each mode says the same and ends alike with
 * and without the library, alone and beside other preloaded libraries. The modes stand in one file for each family. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mode {
  const char *name; /* NULL ends a family */
  int (*run)(void); /* returns the program's exit status, if it returns */
};

extern const struct mode crashes[], leavings[], successors[], children[], descriptors[], bounds[], rights[], filters[],
    timers[], threads[], odds[], unwindings[];

/* A context, current on this thread. */
void start_cuda(void);

/* Allocates that many times, in growing sizes, and frees every other block. On a thread with no context the program's
 * own becomes current. */
void allocate(int times);

/* Threads that allocate for ever. They are at work when this returns. */
void allocate_beside(int count);

/* Says how a child ended. */
void say_end(int status);

/* start_cuda and ten allocations. */
void begin(void);

/* Runs on a new thread and waits for it. */
void on_thread(void *(*run)(void *));

/* Ends by running out of stack. */
int overflow_stack(void);

#ifdef __cplusplus
}
#endif
