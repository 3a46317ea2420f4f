/* A process that uses CUDA, and so many children of it, one after the other, that make so many allocations each; two
 * threads of the parent allocate and free all the while:
 *
 *   forkstorm CHILDREN ALLOCATIONS
 *
 * Prints how many of the children's allocations succeeded. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"

int cuDevicePrimaryCtxRetain(void **context, int device);

#define SIZE 1000u
#define OWN 100

static void *context;
static int over;

static unsigned allocate(long n) {
  unsigned granted = 0;
  for (long i = 0; i < n; i++) {
    uint64_t address;
    if (cuMemAlloc_v2(&address, SIZE)) continue;
    granted++;
    cuMemFree_v2(address);
  }
  return granted;
}

static void *beside(void *unused) {
  (void)unused;
  if (cuCtxSetCurrent(context)) exit(3);
  while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) allocate(10);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  long children = atol(argv[1]), each = atol(argv[2]);
  unsigned granted = 0;
  pthread_t threads[2];
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || allocate(OWN) != OWN) return 1;
  for (int i = 0; i < 2; i++)
    if (pthread_create(&threads[i], NULL, beside, NULL)) return 1;
  for (long i = 0; i < children; i++) {
    int status;
    pid_t child = fork();
    if (!child) _exit((int)allocate(each));
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 4;
    granted += (unsigned)WEXITSTATUS(status);
  }
  __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%u\n", granted);
  return 0;
}
