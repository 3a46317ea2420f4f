/* Events under callgrind, which counts the instructions of a stretch of the program and writes them to a file of the
 * stretch's name. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct instructions_case {
  const char *name;
  void (*once)(void *argument, uint64_t number); /* what is counted: two events of a kind that belong together */
  void *argument;
};

/* Keeps the library's drainer asleep, which valgrind cannot run; before the first event. */
void instructions_alone(void);

/* Does it a number of times to warm up, and then a number of times counted. */
void instructions_count(const struct instructions_case *c);

/* Counts a framework block's allocation and free, reported from one of four stacks with that many more frames, -1:
 * none. The stacks take turns, or come at random. */
void instructions_report(const char *name, int32_t levels, bool random);
