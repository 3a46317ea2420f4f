/* group_host ROOT STRANGER: opens a library for itself. Another one and the program must not see what came with it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static void *function(const char *library, const char *name) {
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL), *found = opened ? dlsym(opened, name) : NULL;
  if (!found) fprintf(stderr, "group_host: %s\n", dlerror()), exit(2);
  return found;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int (*use)(size_t) = (int (*)(size_t))function(argv[1], "use_root"),
      (*look)(void) = (int (*)(void))function(argv[2], "look");
  int failed = use(7001) + use(7001);
  printf("the stranger sees %s, the program %s\n", look() ? "it" : "nothing",
         dlsym(RTLD_DEFAULT, "cudaMalloc") ? "it" : "nothing");
  return failed != 0;
}
