/* What the families of modes share. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cuda.h"

struct mode {
  const char *name; /* NULL ends a family */
  void (*run)(void);
};

extern const struct mode forks[], ends[], signals[], threads[], folders[], limits[], filters[], calls[];

/* Ends the program, visibly, if a result is not 0. */
void check(int result, const char *what);

/* Initialises the driver and makes a context. */
void start_cuda(void);

/* Allocates and frees, that many times. */
void allocate(size_t size, int times);

/* start_cuda and 100 allocations of 1000 bytes. */
void begin(void);

/* Waits for a child of any kind and prints how it ended. */
void wait_for(pid_t child);

/* Long enough for the library's drainer to be at work. */
void let_settle(void);

/* A page in the file "count", which outlives any end of the process. */
uint64_t *shared_count(void);
