/* What programs do that a preloaded library must survive unnoticed:  manners MODE. Every mode prints the same with and
 * without the library. The modes stand in one file for each family; each opens with the bug that it guards against. */
#define _GNU_SOURCE
#include "manners.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void check(int result, const char *what) {
  if (!result) return;
  printf("%s gave %d\n", what, result);
  fflush(stdout);
  _exit(9);
}

void start_cuda(void) {
  void *context;
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
}

void allocate(size_t size, int times) {
  uint64_t p;
  for (int i = 0; i < times; i++) {
    check(cuMemAlloc_v2(&p, size), "cuMemAlloc");
    check(cuMemFree_v2(p), "cuMemFree");
  }
}

void begin(void) {
  start_cuda();
  allocate(1000, 100);
}

void wait_for(pid_t child) {
  int status;
  if (waitpid(child, &status, __WALL) != child) printf("no child\n");
  else printf("child ended with %#x\n", status);
}

void let_settle(void) { usleep(100000); }

uint64_t *shared_count(void) {
  int fd = open("count", O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096)) return NULL;
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return page == MAP_FAILED ? NULL : page;
}

int main(int argc, char **argv) {
  static const struct mode *const families[] = {forks, ends, signals, threads, folders, limits, filters, calls};
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; argc > 1 && i < sizeof families / sizeof *families; i++)
    for (const struct mode *mode = families[i]; mode->name; mode++)
      if (!strcmp(argv[1], mode->name)) {
        mode->run();
        printf("end\n");
        return 0;
      }
  fprintf(stderr, "no such mode\n");
  return 2;
}
