#define _GNU_SOURCE
#include "gomemory.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "maps.h"
#include "sys.h"
#include "unwind.h"

#define MT_GO_RESERVATIONS 64u
#define MT_GO_BLOCKS 64u
#define MT_GO_BLOCK 64u
#define MT_GO_LOCK_TRIES 100000u

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

size_t mt_go_stack = 1u << 20;

struct range {
  uintptr_t start, end;
};

/* Where the runtime has asked for address space without any rights to it. */
static struct range reserved[MT_GO_RESERVATIONS];
static unsigned count;
static uint64_t held;
static bool given_back;
static uint32_t locked; /* held for the length of one system call, by the runtime's threads */

static bool lock(void) {
  for (unsigned tries = 0; __atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE); tries++) {
    if (tries == MT_GO_LOCK_TRIES) return false; /* a thread that held it does not exist in this child */
    mt_sys_yield();
  }
  return true;
}

static void unlock(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }

static void note_reserved(uintptr_t start, size_t size) {
  if (count < MT_GO_RESERVATIONS) reserved[count++] = (struct range){start, start + size};
}

static bool is_reserved(uintptr_t start, size_t size) {
  for (unsigned i = 0; i < count; i++)
    if (start >= reserved[i].start && start + size <= reserved[i].end) return true;
  return false;
}

/* The runtime reserves more than it wants and cuts both ends off, so that the rest is aligned. */
static void note_cut(uintptr_t start, uintptr_t end) {
  for (unsigned i = 0; i < count; i++) {
    struct range *r = &reserved[i];
    if (end <= r->start || start >= r->end) continue;
    if (start > r->start && end < r->end) note_reserved(end, r->end - end);
    if (start > r->start) r->end = start;
    else if (end < r->end) r->start = end;
    else *r = (struct range){0, 0};
  }
}

/* A place that was given back may be the program's by now. */
static void *take_again(void *at, size_t size, int protection, int flags) {
  if (protection == PROT_NONE) return at;
  void *got = mt_sys_mmap(at, size, protection, (flags & ~MAP_FIXED) | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == at) return at;
  if (got) mt_sys_munmap(got, size); /* a kernel that does not know the flag */
  errno = ENOMEM;
  return NULL;
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  bool locked_here = lock();
  bool again = given_back && flags & MAP_FIXED && is_reserved((uintptr_t)at, size);
  void *got = again ? take_again(at, size, protection, flags) : mt_sys_mmap(at, size, protection, flags, fd, (uint64_t)offset);
  if (got && protection == PROT_NONE && !(flags & MAP_FIXED)) note_reserved((uintptr_t)got, size);
  if (got && protection != PROT_NONE) __atomic_add_fetch(&held, size, __ATOMIC_RELAXED);
  if (locked_here) unlock();
  return got ? got : MAP_FAILED;
}

int __wrap_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size) {
  bool locked_here = lock();
  bool keep = given_back && is_reserved((uintptr_t)at, size); /* some of it may not be ours any more */
  int result = keep ? 0 : mt_sys_munmap(at, size);
  if (!keep) note_cut((uintptr_t)at, (uintptr_t)at + size);
  if (locked_here) unlock();
  return result;
}

static bool give_back(const struct mt_map *map, void *unused) {
  (void)unused;
  for (unsigned i = 0; i < count && map->permissions[0] == '-' && map->permissions[1] == '-'; i++) {
    uintptr_t start = map->start > reserved[i].start ? map->start : reserved[i].start, end = map->end < reserved[i].end ? map->end : reserved[i].end;
    if (start < end) mt_sys_munmap((void *)start, end - start);
  }
  return true;
}

void mt_go_give_back(void) {
  if (!lock()) return;
  if (count) given_back = mt_maps_each(give_back, NULL) || given_back;
  unlock();
}

uint64_t mt_go_memory_held(void) { return __atomic_load_n(&held, __ATOMIC_RELAXED); }

extern int __real_pthread_attr_init(pthread_attr_t *attributes) __attribute__((weak));
int __wrap_pthread_attr_init(pthread_attr_t *attributes);
int __wrap_pthread_attr_init(pthread_attr_t *attributes) {
  int error = __real_pthread_attr_init(attributes);
  if (!error) pthread_attr_setstacksize(attributes, mt_go_stack);
  return error;
}

extern int __real_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes) __attribute__((weak));
int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes);
/* Each of the runtime's threads asks for its own stack, and the C library takes memory to answer. */
int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes) {
  struct mt_stack_bounds stack;
  int error = mt_stack_find((uintptr_t)&stack, &stack) ? __real_pthread_attr_init(attributes) : EAGAIN;
  if (!error) error = pthread_attr_setstack(attributes, (void *)stack.low, stack.top - stack.low);
  return error ? __real_pthread_getattr_np(thread, attributes) : 0;
}

/* What a thread of the runtime's is handed when it starts. */
static char blocks[MT_GO_BLOCKS][MT_GO_BLOCK] __attribute__((aligned(16)));
static uint32_t used[MT_GO_BLOCKS];

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
  for (unsigned i = 0; i < MT_GO_BLOCKS && size <= MT_GO_BLOCK; i++)
    if (!__atomic_exchange_n(&used[i], 1, __ATOMIC_ACQUIRE)) return blocks[i];
  return mt_sys_pages(size); /* and stays */
}

void __wrap_free(void *block);
void __wrap_free(void *block) {
  size_t at = (size_t)((char *)block - blocks[0]);
  if (at < sizeof blocks) __atomic_store_n(&used[at / MT_GO_BLOCK], 0, __ATOMIC_RELEASE);
}
