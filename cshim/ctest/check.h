/* Tests of the library's C half. The library's state belongs to a process, so every case runs in a child of its own, in
 * a fresh folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK(condition) check_that(condition, __FILE__, __LINE__, #condition)
#define CHECK_EQ(have, want) check_equal((uint64_t)(have), (uint64_t)(want), __FILE__, __LINE__, #have)
#define CHECK_TEXT(have, want) check_text(have, want, __FILE__, __LINE__, #have)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZED 1 /* limits on memory do not work here */
#else
#define CHECK_SANITIZED 0
#endif

/* The thread sanitizer takes a parent's threads to be running in a forked child, and the address sanitizer's allocator
 * leaves its locks to the child as they were: a parent's thread that allocated at that moment holds one for ever. The
 * plain build covers these cases. */
#define CHECK_FORKS_OF_THREADS (!CHECK_SANITIZED)

struct check_case {
  const char *name;
  void (*run)(void);
};

void check_that(bool holds, const char *file, int line, const char *text);
void check_equal(uint64_t have, uint64_t want, const char *file, int line, const char *text);
void check_text(const char *have, const char *want, const char *file, int line, const char *text);

/* Says that a case cannot run here, and why. */
void check_skip(const char *why);

/* Runs all cases, prints "NAME: P passed, F failed" and returns the exit status. */
int check_main(const char *name, const struct check_case *cases, size_t count);

/* Runs the function in a child and returns its wait status. */
int check_in_child(void (*run)(void));

/* Starts that many threads at once and joins them; each gets its number, from 0 on. */
void check_threads(unsigned count, void (*run)(uint64_t number));

/* A text that must not be freed, good until sixteen calls later. */
const char *check_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets the output of this process to a file in the case's folder, and returns its spool's path. */
const char *check_output(const char *name);

/* One framework event of the calling thread: an allocation, a free. */
void check_event(uint64_t address);
void check_free(uint64_t address);
