#define _GNU_SOURCE
#include "attach/rebind.h"

#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/object.h"
#include "base/sys.h"
#include "base/thread.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static mt_rebind_choose choose; /* NULL: nothing was ever rebound */

/* dlpi_adds and dlpi_subs (dl_iterate_phdr(3)) at the last walk, and how many objects of the list are done. New ones
 * are at its end. Guarded by the loader's lock, under which the list is walked. */
static unsigned long long seen_adds, seen_subs;
static unsigned done;
static bool waiting; /* an object was not relocated yet: it and those after it are done again */

static struct mt_loaded own; /* this library */

/* One walk over the list. */
struct walk {
  unsigned at;
  int error;
};

/* One object. */
struct target {
  struct mt_loaded object;
  struct mt_range relro;
  bool open; /* RELRO is writable for now */
  int error;
};

static const ElfW(Dyn) *dynamic_of(const struct dl_phdr_info *info) {
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  return NULL;
}

static bool can_be_written(uintptr_t page) {
  return !mt_sys_madvise((void *)page, (size_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_WRITE);
}

/* Until the loader has relocated an object its RELRO pages are writable; then another thread is inside dlopen. Linux
 * before 5.14 lacks MADV_POPULATE_WRITE, and qemu accepts it everywhere. */
static bool is_ready(const struct target *t) {
  return t->relro.start >= t->relro.end || !can_be_written(t->relro.start) ||
         can_be_written((uintptr_t)&is_ready & -(uintptr_t)sysconf(_SC_PAGESIZE));
}

static bool make_writable(struct target *t) {
  if (!t->open && mt_sys_mprotect((void *)t->relro.start, t->relro.end - t->relro.start, PROT_READ | PROT_WRITE)) {
    t->error = errno;
    return false;
  }
  return t->open = true;
}

static bool rebind_word(const struct mt_relocation *r, void *context) {
  struct target *t = context;
  uintptr_t ours = mt_symbol_find(&own, r->name), word = (uintptr_t)r->word;
  if (!ours) return false;
  uintptr_t original = __atomic_load_n(r->word, __ATOMIC_RELAXED);
  if (original == ours || !choose(r, (void *)original)) return false;
  if (word >= t->relro.start && word < t->relro.end && !make_writable(t)) return true;
  __atomic_store_n(r->word, ours, __ATOMIC_RELEASE);
  return false;
}

static int find_own(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (!mt_object_holds(info, (uintptr_t)&find_own)) return 0;
  own = (struct mt_loaded){info->dlpi_addr, dynamic_of(info)};
  return 1;
}

/* False if nothing has happened since the last walk. */
static bool begin_walk(const struct dl_phdr_info *info) {
  if (!waiting && info->dlpi_adds == seen_adds && info->dlpi_subs == seen_subs) return false;
  if (info->dlpi_subs != seen_subs) done = 0; /* the unloaded ones may have been anywhere in the list */
  seen_adds = info->dlpi_adds;
  seen_subs = info->dlpi_subs;
  waiting = false;
  return true;
}

static int rebind_object(struct dl_phdr_info *info, size_t size, void *context) {
  struct walk *w = context;
  (void)size;
  if (!w->at && !begin_walk(info)) return 1;
  if (w->at++ < done) return 0;
  struct target t = {.object = {info->dlpi_addr, dynamic_of(info)}, .relro = mt_object_relro(info)};
  if (t.object.dynamic && t.object.dynamic != own.dynamic) {
    if (is_ready(&t)) mt_relocation_each(&t.object, rebind_word, &t);
    else waiting = true;
  }
  if (t.open) mt_sys_mprotect((void *)t.relro.start, t.relro.end - t.relro.start, PROT_READ);
  if (t.error) w->error = t.error;
  if (!waiting) done = w->at;
  return 0;
}

static int walk(void) {
  struct walk w = {0};
  dl_iterate_phdr(rebind_object, &w);
  return w.error;
}

bool mt_rebind_start(mt_rebind_choose chosen) {
  if (!own.dynamic) dl_iterate_phdr(find_own, NULL);
  __atomic_store_n(&choose, chosen, __ATOMIC_RELEASE);
  errno = walk();
  return !errno;
}

void mt_rebind_new(void) {
  if (MT_LIKELY(!__atomic_load_n(&choose, __ATOMIC_ACQUIRE))) return;
  int error = errno;
  walk();
  errno = error;
}
