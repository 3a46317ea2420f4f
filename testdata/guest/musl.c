/* A program of another C library. A library that needs glibc's own symbols ends it before main, with status 127. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *unused) { return unused; }

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "return";
  setvbuf(stdout, NULL, _IONBF, 0);
  printf("%s works\n", mode);
  if (!strcmp(mode, "exit")) exit(3);
  if (!strcmp(mode, "_exit")) _exit(4);
  if (!strcmp(mode, "quick_exit")) quick_exit(5);
  if (!strcmp(mode, "dlsym")) {
    void *own = dlopen(NULL, RTLD_NOW), *puts_found = dlsym(own, "puts");
    printf("%d %d\n", puts_found != NULL, dlsym(RTLD_DEFAULT, "no_such_name") != NULL);
    printf("%d\n", dlsym(RTLD_NEXT, "malloc") != NULL);
    if (puts_found) ((int (*)(const char *))puts_found)("by dlsym");
  }
  if (!strcmp(mode, "getenv"))
    printf("%s %s\n", getenv("PATH") ? "path" : "no path",
           getenv("NVTX_INJECTION64_PATH") ? "injection" : "no injection");
  if (!strcmp(mode, "fork")) {
    int status = 0;
    pid_t child = fork();
    if (!child) execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
    waitpid(child, &status, 0);
    printf("%d\n", status);
  }
  if (!strcmp(mode, "threads"))
    for (int i = 0; i < 20; i++) {
      pthread_t t;
      if (pthread_create(&t, NULL, work, NULL) || pthread_join(t, NULL)) return 9;
    }
  return 0;
}
