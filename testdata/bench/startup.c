/* What the preloaded library costs a process that never touches CUDA: starts a program many times in pairs, with and
 * without it, in turns.
 *
 *   startup PAIRS LIBRARY PROGRAM [ARGUMENT...]
 *
 * Prints one line a pair: microseconds of wall time and of processor time without the library, then with it. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double seconds(struct timeval t) { return (double)t.tv_sec * 1e6 + (double)t.tv_usec; }

struct cost {
  double wall, cpu; /* microseconds */
};

static struct cost start_once(char **command, char **environment) {
  struct rusage used;
  pid_t pid;
  int status;
  double begin = now();
  if (posix_spawn(&pid, command[0], NULL, NULL, command, environment)) {
    perror(command[0]);
    exit(1);
  }
  if (wait4(pid, &status, 0, &used) != pid || !WIFEXITED(status) || WEXITSTATUS(status)) {
    fprintf(stderr, "%s failed\n", command[0]);
    exit(1);
  }
  return (struct cost){now() - begin, seconds(used.ru_utime) + seconds(used.ru_stime)};
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  long pairs = atol(argv[1]);
  char preload[4200];
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[2]);
  char *plain[] = {"PATH=/usr/bin:/bin", NULL}, *traced[] = {"PATH=/usr/bin:/bin", preload, NULL};
  for (long i = -10; i < pairs; i++) { /* the first ten warm up */
    struct cost without, with;
    if (i & 1) { /* who goes first changes, or the second would profit */
      with = start_once(argv + 3, traced);
      without = start_once(argv + 3, plain);
    } else {
      without = start_once(argv + 3, plain);
      with = start_once(argv + 3, traced);
    }
    if (i >= 0) printf("%.2f %.2f %.2f %.2f\n", without.wall, without.cpu, with.wall, with.cpu);
  }
  return 0;
}
