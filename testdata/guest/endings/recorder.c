/* What a program can see of the library that records it: a mode waits for what it is about, and not for a while. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "endings.h"

enum {
  PACE_US = 1000, /* between two looks */
  ENOUGH = 1500   /* of 2,000 records each, of 64 bytes */
};

/* The size of this process's trace, -1 if it has none here. */
static off_t trace_size(void) {
  char pattern[64];
  struct stat file;
  glob_t traces;
  snprintf(pattern, sizeof pattern, "memtrace.*.%d.bin", getpid());
  off_t size = !glob(pattern, 0, NULL, &traces) && !stat(traces.gl_pathv[0], &file) ? file.st_size : -1;
  globfree(&traces);
  return size;
}

/* The library has made the trace when the first call returns. UNDRAINED says that its drainer cannot run. */
bool is_recorded(void) { return trace_size() >= 0 && !getenv("UNDRAINED"); }

/* Looks again and again, but not for ever: who hangs here prints what nobody else does. */
static bool looks(int *times) {
  if (++*times % 50000 == 0) return printf("what was waited for does not come\n"), false;
  usleep(PACE_US);
  return true;
}

void await_recorder(void) {
  for (int times = 0; is_recorded() && trace_size() <= 0 && looks(&times);) continue;
}

/* A drainer that the mode has left without threads or memory never writes: then the work itself is enough. */
void work_until_flush(void) {
  off_t before = trace_size();
  for (int times = 0; times < ENOUGH && is_recorded() && trace_size() == before && looks(&times);) take(500, 1000);
}

void await_cut(off_t limit) {
  for (int times = 0; is_recorded() && trace_size() < limit && looks(&times);) take(500, 1000);
}

void await_state(pid_t process, char state) {
  char name[64], text[512], *end;
  snprintf(name, sizeof name, "/proc/%d/stat", process);
  for (int times = 0; looks(&times);) {
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return; /* gone altogether */
    text[n] = 0;
    if ((end = strrchr(text, ')')) && end[2] == state) return;
  }
}
