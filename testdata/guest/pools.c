/* pools [THREADS]: memory pools of the program's own, which it reports, beside memory that it takes directly. At the
 * end, with all of it still there, it prints what its own counters say: for each pool its name, blocks, their bytes and
 * what it took from the driver; then the highest that all blocks together were.
 *
 * arena: cut off in turn, given back as a whole. classes: blocks of eight sizes, lent again.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "memtrace.h"

enum { CHUNK = 1 << 20, ROUNDS = 200, SLOTS = 64 };

struct pool {
  const char *name;
  uint64_t handle;
  uint64_t at, left; /* of the newest chunk */
  size_t blocks, bytes, taken;
  uint64_t idle[8][SLOTS]; /* by class */
  int idles[8];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t live, highest;
static void *context;

static uint64_t device(size_t size) {
  uint64_t p = 0;
  if (cuMemAlloc_v2(&p, size)) exit(3);
  return p;
}

static void grow(struct pool *pool, size_t size) {
  size_t chunk = size > CHUNK ? size : CHUNK;
  pool->at = device(chunk);
  pool->left = chunk;
  pool->taken += chunk;
}

static uint64_t cut(struct pool *pool, size_t size) {
  if (pool->left < size) grow(pool, size);
  uint64_t p = pool->at;
  pool->at += size;
  pool->left -= size;
  return p;
}

static void count(struct pool *pool, uint64_t p, size_t size) {
  pool->blocks++;
  pool->bytes += size;
  live += size;
  if (live > highest) highest = live;
  MEMTRACE_POOL_ALLOC(pool->handle, (void *)p, size);
}

static uint64_t take(struct pool *pool, int class) {
  pthread_mutex_lock(&lock);
  size_t size = (size_t)4096 << class;
  uint64_t p = pool->idles[class] ? pool->idle[class][--pool->idles[class]] : cut(pool, size);
  count(pool, p, size);
  pthread_mutex_unlock(&lock);
  return p;
}

static void give(struct pool *pool, int class, uint64_t p) {
  size_t size = (size_t)4096 << class;
  pthread_mutex_lock(&lock);
  MEMTRACE_POOL_FREE(pool->handle, (void *)p);
  pool->blocks--;
  pool->bytes -= size;
  live -= size;
  if (pool->idles[class] < SLOTS) pool->idle[class][pool->idles[class]++] = p;
  pthread_mutex_unlock(&lock);
}

static struct pool classes = {.name = "classes"}, arena = {.name = "arena"};

static void encoder(int i) { take(&arena, i % 4); }
static void decoder(int i) { take(&arena, i % 6); }

static void *work(void *number) {
  if (cuCtxSetCurrent(context)) exit(2);
  unsigned state = (unsigned)(uintptr_t)number + 1;
  uint64_t held[8][4] = {{0}};
  for (int i = 0; i < ROUNDS; i++) {
    state = state * 1103515245u + 12345u;
    int class = (int)(state >> 16 & 7), slot = (int)(state >> 20 & 3);
    if (held[class][slot]) give(&classes, class, held[class][slot]);
    held[class][slot] = take(&classes, class);
    encoder(i);
    if (i % 3 == 0) decoder(i);
  }
  return NULL;
}

static void reset(struct pool *pool) {
  MEMTRACE_POOL_DESTROY(pool->handle);
  live -= pool->bytes;
  pool->blocks = pool->bytes = 0;
  pool->handle = MEMTRACE_POOL_CREATE(pool->name, 0);
}

int main(int argc, char **argv) {
  pthread_t thread[16];
  int threads = argc > 1 ? atoi(argv[1]) : 3;
  classes.handle = MEMTRACE_POOL_CREATE(classes.name, 0); /* before the first call of CUDA */
  arena.handle = MEMTRACE_POOL_CREATE(arena.name, 0);
  if (threads > 16 || cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 2;
  device(3 << 20);
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    if (!pass) reset(&arena);
  }
  for (struct pool *pool = &classes; pool; pool = pool == &classes ? &arena : NULL)
    printf("%s %zu %zu %zu\n", pool->name, pool->blocks, pool->bytes, pool->taken);
  printf("peak %zu\n", highest);
  return 0;
}
