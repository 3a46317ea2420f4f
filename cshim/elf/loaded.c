#define _GNU_SOURCE
#include "elf/loaded.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

/* Weak: glibc before 2.35 lacks it, and an undefined symbol here would end every program at its start. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

#define MT_SNAPSHOT_MAX 2048u
#define PAGE ((uintptr_t)4096)

struct object {
  uintptr_t start, end;
  const uint8_t *header;
};

/* Sorted by start. A seqlock: readers copy what they found, and use it if the version was even and is unchanged. */
static struct {
  uint32_t version;
  uint32_t count;
  struct object object[MT_SNAPSHOT_MAX];
} snapshot;

static bool missed;
bool mt_loaded_forced;

bool mt_loaded_is_snapshot(void) { return !_dl_find_object || mt_loaded_forced; }

static int insert(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size, (void)context;
  struct object o = {UINTPTR_MAX, 0, NULL};
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t at = info->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_LOAD && at < o.start) o.start = at & -PAGE;
    if (p->p_type == PT_LOAD && at + p->p_memsz > o.end) o.end = at + p->p_memsz;
    if (p->p_type == PT_GNU_EH_FRAME) o.header = (const uint8_t *)at;
  }
  if (o.start >= o.end) return 0;
  if (snapshot.count == MT_SNAPSHOT_MAX) return 1;
  unsigned at = snapshot.count++;
  for (; at && snapshot.object[at - 1].start > o.start; at--) snapshot.object[at] = snapshot.object[at - 1];
  snapshot.object[at] = o;
  return 0;
}

/* One writer at a time; a second one leaves the work to the first, which then starts over. */
void mt_loaded_refresh(void) {
  static uint32_t wanted;
  if (!mt_loaded_is_snapshot() || __atomic_fetch_add(&wanted, 1, __ATOMIC_ACQ_REL)) return;
  int error = errno;
  uint32_t served;
  do {
    served = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);
    __atomic_store_n(&missed, false, __ATOMIC_RELAXED);
    __atomic_add_fetch(&snapshot.version, 1, __ATOMIC_SEQ_CST);
    snapshot.count = 0;
    dl_iterate_phdr(insert, NULL);
    __atomic_add_fetch(&snapshot.version, 1, __ATOMIC_SEQ_CST);
  } while (__atomic_sub_fetch(&wanted, served, __ATOMIC_ACQ_REL));
  errno = error;
}

void mt_loaded_refresh_missed(void) {
  if (__atomic_load_n(&missed, __ATOMIC_RELAXED)) mt_loaded_refresh();
}

/* Torn reads are expected, and discarded. */
__attribute__((no_sanitize("thread"))) static bool search(uintptr_t pc, struct object *found) {
  uint32_t low = 0, high = snapshot.count;
  if (high > MT_SNAPSHOT_MAX) return false;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (snapshot.object[middle].start <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low) return false;
  *found = snapshot.object[low - 1];
  return pc >= found->start && pc < found->end;
}

static bool find_in_snapshot(uintptr_t pc, struct object *found) {
  for (int tries = 0; tries < 3; tries++) {
    uint32_t version = __atomic_load_n(&snapshot.version, __ATOMIC_ACQUIRE);
    if (version & 1) continue;
    bool there = search(pc, found);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&snapshot.version, __ATOMIC_RELAXED) != version) continue;
    if (!there) __atomic_store_n(&missed, true, __ATOMIC_RELAXED);
    return there;
  }
  return false;
}

static bool find(uintptr_t pc, struct object *o) {
  if (mt_loaded_is_snapshot()) return find_in_snapshot(pc, o);
  struct dl_find_object found;
  if (_dl_find_object((void *)pc, &found)) return false;
  *o = (struct object){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end, found.dlfo_eh_frame};
  return true;
}

/* Calls each for every loaded segment, with its bounds, until that is true. Does nothing where the file's header was
 * not loaded with the object. */
static void each_segment(const struct object *o,
                         bool (*each)(uintptr_t start, uintptr_t end, uint32_t flags, void *context), void *context) {
  const ElfW(Ehdr) *header = (const void *)o->start;
  if (o->end - o->start < PAGE || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
      header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff >= PAGE ||
      header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > PAGE)
    return;
  const ElfW(Phdr) *p = (const void *)(o->start + header->e_phoff), *first = NULL;
  for (unsigned i = 0; i < header->e_phnum; i++) {
    if (p[i].p_type != PT_LOAD) continue;
    if (!first) first = &p[i];
    uintptr_t start = o->start - (first->p_vaddr & -PAGE) + p[i].p_vaddr, end = start + p[i].p_filesz;
    if (start >= o->start && end >= start && end <= o->end && each(start, end, p[i].p_flags, context)) return;
  }
}

/* Between an object's segments there may be unreadable pages: only the segment that holds .eh_frame_hdr is read. */
static bool narrow(uintptr_t start, uintptr_t end, uint32_t flags, void *context) {
  struct mt_frame_table *table = context;
  if ((uintptr_t)table->header < start || (uintptr_t)table->header >= end || !(flags & PF_R)) return false;
  table->start = (const uint8_t *)start;
  table->end = (const uint8_t *)end;
  return true;
}

bool mt_loaded_find(uintptr_t pc, struct mt_frame_table *table) {
  struct object o;
  if (!find(pc, &o)) return false;
  *table = (struct mt_frame_table){o.header, (const uint8_t *)o.start, (const uint8_t *)o.end};
  if (o.header) each_segment(&o, narrow, table);
  return true;
}

struct wanted_code {
  uintptr_t start, end;
  bool found;
};

static bool holds_code(uintptr_t start, uintptr_t end, uint32_t flags, void *context) {
  struct wanted_code *wanted = context;
  if (wanted->start < start || wanted->end > end) return false;
  wanted->found = (flags & (PF_R | PF_X)) == (PF_R | PF_X);
  return true;
}

const uint8_t *mt_loaded_code(uintptr_t pc, uintptr_t before) {
  struct wanted_code wanted = {pc - before, pc, false};
  struct object o;
  if (find(pc - 1, &o)) each_segment(&o, holds_code, &wanted);
  return wanted.found ? (const uint8_t *)pc : NULL;
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

uint64_t mt_loaded_own(bool all) {
  const ElfW(Ehdr) *header = (const void *)__ehdr_start;
  const ElfW(Phdr) *p = (const void *)(__ehdr_start + header->e_phoff);
  uint64_t bytes = 0;
  for (unsigned i = 0; i < header->e_phnum; i++)
    if (p[i].p_type == PT_LOAD && (all || p[i].p_flags & PF_W)) bytes += (p[i].p_memsz + 2 * 4096 - 1) & ~4095ull;
  return bytes;
}
