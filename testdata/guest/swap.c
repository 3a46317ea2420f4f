/* A folder that others can write to, played by the program itself:  swap PATH KIND [TARGET]. At a moment that an
 * attacker can only race for, the file PATH is replaced: by a link to TARGET, by a pipe, or by another file. The moment
 * is when the library, having made its files, starts the thread that will open them ("at the start"), or, with
 * KIND-at-end, when the program returns from main. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda.h"

static char **words; /* PATH KIND TARGET */
static int swapped;

static void swap(void) {
  struct stat s;
  if (swapped || lstat(words[0], &s)) return; /* nothing was made */
  swapped = 1;
  char away[4096];
  snprintf(away, sizeof away, "%s.away", words[0]); /* deleted, its inode could become the next file's */
  if (rename(words[0], away)) return;
  if (!strncmp(words[1], "link", 4)) symlink(words[2], words[0]);
  else if (!strncmp(words[1], "pipe", 4)) mkfifo(words[0], 0600);
  else close(open(words[0], O_CREAT | O_EXCL | O_WRONLY, 0600));
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
  if (!strstr(words[1], "-at-end")) swap();
  return next(thread, attributes, run, argument);
}

int main(int argc, char **argv) {
  void *context;
  uint64_t p;
  if (argc < 3) return 2;
  words = argv + 1;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 9;
  for (int i = 0; i < 100; i++)
    if (cuMemAlloc_v2(&p, 1000) || cuMemFree_v2(p)) return 9;
  if (strstr(words[1], "-at-end")) {
    struct stat trace = {0};
    while (stat(getenv("MEMTRACE_OUTPUT"), &trace) || !trace.st_size) usleep(1000); /* until the drainer has begun it */
    swap();
  }
  printf("end\n");
  return 0;
}
