/* Programs that end, or do what programs do shortly before:  endings MODE. Each mode says the same and ends alike with
 * and without the library, alone and beside other preloaded libraries. The modes stand in one file for each family; a
 * mode that guards against a bug opens with it. internal/hostile/endings_test.go says what each leaves in its trace. */
#pragma once

#include <stdbool.h>
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

/* Sizes that a trace is searched for: of the allocations that start_cuda makes and of those by take. */
enum { FIRST_SIZE = 777, OWN_SIZE = 700 };

/* A context, current on this thread. */
void make_context(void);

/* make_context, and a hundred blocks of FIRST_SIZE that come and go. */
void start_cuda(void);

/* Allocates and frees, that many times. On a thread with no context the program's own becomes current. */
void take(size_t size, int times);

/* Allocates that many times, in growing sizes, and frees every other block. The context as above. */
void allocate(int times);

/* Threads that allocate for ever. They are at work when this returns. */
void allocate_beside(int count);

/* Says how a child ended. */
void say_end(int status);

/* Waits for a child of any kind and returns how it ended, -1 if it is none. */
int status_of(pid_t child);

/* start_cuda and ten allocations. */
void begin(void);

/* Runs on a new thread and waits for it. */
void on_thread(void *(*run)(void *));

/* Ends by running out of stack. */
int overflow_stack(void);

/* Says ok, for modes whose status is 0. */
int ok(void);

/* What a program can see of the library (recorder.c). Where it is not, or has no drainer, these do not wait. */

/* Whether there is a drainer. */
bool is_recorded(void);

/* Waits until the drainer is up: then it writes the head of the trace. */
void await_recorder(void);

/* Allocates until the trace has been written to again, or has been cut at a limit on files. */
void work_until_flush(void);
void await_cut(off_t limit);

/* Waits until a process's first thread is in that state, as /proc says it: Z where only its name is left. */
void await_state(pid_t process, char state);

#ifdef __cplusplus
}
#endif
