/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the recording library: it implements memtrace.h to the letter and writes each call as a line of text,
 * so that the header and the Python package can be tested without a GPU, a driver or the library itself.
 *
 * FAKE_MEMTRACE_LOG names the file that gets one line per call: the verb, then the tag path after the call or the
 * argument.
 */
#define MEMTRACE_IMPLEMENTATION
#include "memtrace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct level {
  int named; /* 0: a push that was refused, which still counts */
  char name[MEMTRACE_NAME_MAX + 1];
};

static __thread struct level stack[MEMTRACE_TAG_DEPTH_MAX];
static __thread int depth; /* may exceed MEMTRACE_TAG_DEPTH_MAX: such levels count but are not stored */

/* Returns the calling thread's tag path. The buffer is the thread's own and is overwritten by the next call. */
MEMTRACE_API const char *fake_memtrace_path(void);
/* Returns how many pushes the calling thread has not yet popped. */
MEMTRACE_API int fake_memtrace_depth(void);

const char *fake_memtrace_path(void) {
  static __thread char path[MEMTRACE_TAG_PATH_MAX + 1];
  int stored = depth < MEMTRACE_TAG_DEPTH_MAX ? depth : MEMTRACE_TAG_DEPTH_MAX;
  path[0] = '\0';
  for (int i = 0; i < stored; i++) {
    if (!stack[i].named)
      continue;
    if (path[0] != '\0')
      strcat(path, ".");
    strcat(path, stack[i].name);
  }
  return path;
}

int fake_memtrace_depth(void) {
  return depth;
}

static void log_line(const char *verb, const char *argument) {
  const char *file = getenv("FAKE_MEMTRACE_LOG");
  char line[MEMTRACE_TAG_PATH_MAX + 64];
  if (file == NULL)
    return;
  int length = snprintf(line, sizeof line, "%s %s\n", verb, argument);
  int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0)
    return;
  if (write(fd, line, (size_t)length) != length)
    abort();
  close(fd);
}

static void log_number(const char *verb, uint64_t n) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)n);
  log_line(verb, text);
}

int memtrace_tag_push(const char *name) {
  int result = MEMTRACE_OK;
  if (name == NULL || name[0] == '\0' || strlen(name) > MEMTRACE_NAME_MAX)
    result = MEMTRACE_ERR_NAME;
  else if (depth >= MEMTRACE_TAG_DEPTH_MAX)
    result = MEMTRACE_ERR_DEPTH;
  else if (strlen(fake_memtrace_path()) + 1 + strlen(name) > MEMTRACE_TAG_PATH_MAX)
    result = MEMTRACE_ERR_FULL;
  if (depth < MEMTRACE_TAG_DEPTH_MAX) {
    stack[depth].named = result == MEMTRACE_OK;
    if (result == MEMTRACE_OK)
      strcpy(stack[depth].name, name);
  }
  depth++;
  log_line("push", fake_memtrace_path());
  return result;
}

void memtrace_tag_pop(void) {
  if (depth > 0)
    depth--;
  log_line("pop", fake_memtrace_path());
}

void memtrace_mark(const char *name) {
  log_line("mark", name);
}

void memtrace_step(uint64_t n) {
  log_number("step", n);
}

void memtrace_epoch(uint64_t n) {
  log_number("epoch", n);
}

uint64_t memtrace_pool_create(const char *name, int device) {
  char text[300];
  snprintf(text, sizeof text, "%.255s on %d", name, device);
  log_line("pool", text);
  return 7;
}

int memtrace_pool_alloc(uint64_t pool, const void *ptr, size_t bytes) {
  (void)pool;
  log_number(ptr ? "pool alloc" : "pool alloc of nothing", bytes);
  return MEMTRACE_OK;
}

int memtrace_pool_free(uint64_t pool, const void *ptr) {
  log_number(ptr ? "pool free" : "pool free of nothing", pool);
  return MEMTRACE_OK;
}

void memtrace_pool_destroy(uint64_t pool) {
  log_number("pool destroy", pool);
}

int memtrace_active(void) {
  return getenv("FAKE_MEMTRACE_OFF") == NULL;
}
