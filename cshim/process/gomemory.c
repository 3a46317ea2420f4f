#define _GNU_SOURCE
#include "process/gomemory.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "process/maps.h"
#include "spool.h"
#include "unwind/unwind.h"

#define MT_GO_RESERVATIONS 64u
#define MT_GO_BLOCKS 64u
#define MT_GO_BLOCK 64u
#define MT_GO_LOCK_TRIES 100000u

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

size_t mt_go_stack = 1u << 20;

/* Where the runtime has reserved address space (PROT_NONE). */
struct range {
  uintptr_t start, end;
  bool given_back;
};

static struct range reserved[MT_GO_RESERVATIONS];
static unsigned count;
static uint64_t held;
static bool *here; /* on a page that the kernel wipes in children: this process has the runtime's memory */
static uint32_t locked; /* held for the length of one system call, by the runtime's threads */

static bool lock(void) {
  for (unsigned tries = 0; __atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE); tries++) {
    if (tries == MT_GO_LOCK_TRIES) return false; /* a thread that held it does not exist in this child */
    mt_sys_yield();
  }
  return true;
}

static void unlock(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }

/* A forked child has no runtime. It would only have to copy all that this one has, and this one would find each page
 * that it writes to copied. */
static void keep_from_children(void *at, size_t size) {
  if (!here && (here = mt_sys_pages_alloc(MT_PAGE)) && mt_sys_madvise(here, MT_PAGE, MADV_WIPEONFORK)) {
    mt_sys_pages_free(here, MT_PAGE);
    here = NULL;
  }
  if (!here) return;
  *here = true;
  mt_sys_madvise(at, size, MADV_DONTFORK);
}

/* Without such a page nothing was kept from children. */
static bool is_here(void) { return !here || *here; }

static void note_reserved(uintptr_t start, size_t size, bool given_back) {
  if (count < MT_GO_RESERVATIONS) reserved[count++] = (struct range){start, start + size, given_back};
}

/* Where the part that begins there ends, and whether it was given back. */
static uintptr_t part_of(uintptr_t start, uintptr_t end, bool *given_back) {
  *given_back = false;
  for (unsigned i = 0; i < count; i++) {
    const struct range *r = &reserved[i];
    if (start >= r->start && start < r->end) {
      *given_back = r->given_back;
      return end < r->end ? end : r->end;
    }
    if (r->start > start && r->start < end) end = r->start;
  }
  return end;
}

static bool was_given_back(uintptr_t start, uintptr_t end) {
  bool given_back = false;
  while (start < end && !given_back) start = part_of(start, end, &given_back);
  return given_back;
}

/* The runtime reserves more than it wants and cuts both ends off, so that the rest is aligned. */
static void note_cut(uintptr_t start, uintptr_t end) {
  for (unsigned i = 0; i < count; i++) {
    struct range *r = &reserved[i];
    if (end <= r->start || start >= r->end) continue;
    if (start > r->start && end < r->end) note_reserved(end, r->end - end, r->given_back);
    if (start > r->start) r->end = start;
    else if (end < r->end) r->start = end;
    else *r = (struct range){0, 0, false};
  }
}

/* A place that was given back may be the program's by now. */
static bool take_again(void *at, size_t size, int protection, int flags) {
  if (protection == PROT_NONE) return true;
  void *got = mt_sys_mmap(at, size, protection, (flags & ~MAP_FIXED) | MAP_FIXED_NOREPLACE, -1, 0);
  if (got && got != at) mt_sys_munmap(got, size); /* a kernel that does not know the flag */
  return got == at;
}

/* The runtime maps adjacent reservations with one call. */
static void *take(void *at, size_t size, int protection, int flags, int fd, uint64_t offset) {
  uintptr_t start = (uintptr_t)at, end = start + size;
  if (!(flags & MAP_FIXED) || !was_given_back(start, end)) return mt_sys_mmap(at, size, protection, flags, fd, offset);
  for (uintptr_t stop; start < end; start = stop) {
    bool given_back;
    stop = part_of(start, end, &given_back);
    if (given_back ? !take_again((void *)start, stop - start, protection, flags)
                   : !mt_sys_mmap((void *)start, stop - start, protection, flags, -1, 0))
      return errno = ENOMEM, NULL;
  }
  return at;
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  bool locked_here = lock();
  void *got = take(at, size, protection, flags, fd, (uint64_t)offset);
  if (got && protection == PROT_NONE && !(flags & MAP_FIXED)) note_reserved((uintptr_t)got, size, false);
  if (got) keep_from_children(got, size);
  if (got && protection != PROT_NONE) __atomic_add_fetch(&held, size, __ATOMIC_RELAXED);
  if (locked_here) unlock();
  return got ? got : MAP_FAILED;
}

int __wrap_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size) {
  bool locked_here = lock();
  bool keep = was_given_back((uintptr_t)at, (uintptr_t)at + size); /* some of it may not be ours any more */
  int result = keep ? 0 : mt_sys_munmap(at, size);
  if (!keep) note_cut((uintptr_t)at, (uintptr_t)at + size);
  if (locked_here) unlock();
  return result;
}

static bool release_map(const struct mt_map *map, void *unused) {
  (void)unused;
  for (unsigned i = 0; i < count && map->permissions[0] == '-' && map->permissions[1] == '-'; i++) {
    uintptr_t start = map->start > reserved[i].start ? map->start : reserved[i].start,
              end = map->end < reserved[i].end ? map->end : reserved[i].end;
    if (start < end) mt_sys_munmap((void *)start, end - start);
  }
  return true;
}

void mt_go_release_memory(void) {
  if (!is_here() || !lock()) return;
  if (mt_maps_each(release_map, NULL))
    for (unsigned i = 0; i < count; i++) reserved[i].given_back = true;
  unlock();
}

uint64_t mt_go_memory_held(void) { return is_here() ? __atomic_load_n(&held, __ATOMIC_RELAXED) : 0; }

extern int __real_pthread_attr_init(pthread_attr_t *attributes) __attribute__((weak));
int __wrap_pthread_attr_init(pthread_attr_t *attributes);
int __wrap_pthread_attr_init(pthread_attr_t *attributes) {
  int error = __real_pthread_attr_init(attributes);
  if (!error) pthread_attr_setstacksize(attributes, mt_go_stack);
  return error;
}

extern int __real_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes) __attribute__((weak));
int __wrap_pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes);
/* Each of the runtime's threads queries its own stack, and the C library allocates for the result. */
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
  return mt_sys_pages_alloc(size); /* and stays */
}

void __wrap_free(void *block);
void __wrap_free(void *block) {
  size_t at = (size_t)((char *)block - blocks[0]);
  if (at < sizeof blocks) __atomic_store_n(&used[at / MT_GO_BLOCK], 0, __ATOMIC_RELEASE);
}
