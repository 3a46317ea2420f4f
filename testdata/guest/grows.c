/* grows KIND: memory of one kind that grows by BYTES in all, which it prints; or, by the last KINDs, that does not.
 *
 * leak: every third block is forgotten. only: nothing is ever freed. managed, pinned, registered: leaks of those kinds.
 * pool: a pool that keeps blocks that are too small for requests that get larger.
 * loads: all at the beginning. balanced: all is freed. full: a cache that is full at half of the run.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

enum { ROUNDS = 3000, BLOCK = 65536, PIECE = 4096, POOL = 4096 };

static size_t kept;
static void *context;
static struct {
  uint64_t address;
  size_t size;
} pool[POOL];

static uint64_t device(size_t size) {
  uint64_t p = 0;
  if (cuMemAlloc_v2(&p, size)) exit(3);
  return p;
}

static void leak(int i) {
  uint64_t p = 0;
  if (cuMemAlloc_v2(&p, BLOCK)) exit(3); /* leak */
  if (i % 3) cuMemFree_v2(p);
  else kept += BLOCK;
}

static void only(int i) {
  uint64_t p = 0;
  (void)i;
  if (cuMemAlloc_v2(&p, BLOCK)) exit(3); /* leak */
  kept += BLOCK;
}

static void managed(int i) {
  uint64_t p = 0;
  if (cuMemAllocManaged(&p, BLOCK, 1)) exit(3); /* leak */
  if (i % 2) cuMemFree_v2(p);
  else kept += BLOCK;
}

static void pinned(int i) {
  void *p = NULL;
  if (cuMemAllocHost_v2(&p, BLOCK)) exit(3); /* leak */
  if (i % 2) cuMemFreeHost(p);
  else kept += BLOCK;
}

static void registered(int i) {
  static char *base;
  if (!base) base = aligned_alloc(PIECE, (size_t)PIECE * ROUNDS);
  if (cuMemHostRegister_v2(base + (size_t)i * PIECE, PIECE, 0)) exit(3); /* leak */
  kept += PIECE;
  cuMemFree_v2(device(BLOCK));
}

static void request(size_t need) {
  int best = -1;
  for (int k = 0; k < POOL; k++)
    if (pool[k].size >= need && (best < 0 || pool[k].size < pool[best].size)) best = k;
  if (best >= 0) return; /* taken, and put back */
  for (best = 0; pool[best].size; best++) {}
  pool[best].size = need + need / 20;
  if (cuMemAlloc_v2(&pool[best].address, pool[best].size)) exit(3); /* leak */
  kept += pool[best].size;
}

static void pooled(int i) {
  for (int k = 0; k < 10; k++) request(((size_t)i * 10 + k + 1) * 1024);
}

static void loads(int i) {
  if (i < ROUNDS / 4) device(BLOCK);
  else cuMemFree_v2(device(BLOCK));
}

static void balanced(int i) { cuMemFree_v2(device((size_t)(i % 50 + 1) * 1024)); }

static void full(int i) {
  if (i < ROUNDS / 2) device(BLOCK);
  cuMemFree_v2(device(BLOCK));
}

static const struct {
  const char *name;
  void (*round)(int);
} kinds[] = {{"leak", leak},         {"only", only},   {"managed", managed}, {"pinned", pinned},
             {"registered", registered}, {"pool", pooled}, {"loads", loads},     {"balanced", balanced},
             {"full", full}};

int main(int argc, char **argv) {
  if (argc != 2 || cuInit(0) || cuCtxCreate_v2(&context, 0, 0)) return 2;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    if (strcmp(argv[1], kinds[k].name)) continue;
    for (int i = 0; i < ROUNDS; i++) kinds[k].round(i);
    printf("%zu\n", kept);
    return 0;
  }
  return 2;
}
