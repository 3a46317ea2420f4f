/* Many threads that record little each.
 *
 *   briefly after N       N threads, one after the other
 *   briefly beside N EACH N threads at once; when all are there, each allocates EACH times
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

enum { SIZE = 700, STACK = 64 << 10 };

static void *context;
static int each = 1;
static pthread_barrier_t all;

static void *allocate(void *together) {
  uint64_t address;
  cuCtxSetCurrent(context);
  if (together) pthread_barrier_wait(&all);
  for (int i = 0; i < each; i++)
    if (cuMemAlloc_v2(&address, SIZE) || cuMemFree_v2(address)) printf("no memory\n");
  if (together) pthread_barrier_wait(&all);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  int count = atoi(argv[2]), together = !strcmp(argv[1], "beside"), made = 0;
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  pthread_barrier_init(&all, NULL, (unsigned)count);
  if (argc > 3) each = atoi(argv[3]);
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 3;
  allocate(NULL);
  for (; made < count; made++) {
    if (pthread_create(&threads[made], &attributes, allocate, together ? &all : NULL)) {
      printf("no thread\n");
      exit(4);
    }
    if (!together) pthread_join(threads[made], NULL);
  }
  for (int i = 0; i < made && together; i++) pthread_join(threads[i], NULL);
  printf("%d threads\n", made);
  return 0;
}
