#define _GNU_SOURCE
#include "attach/pointers.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "attach/object.h"
#include "base/saferead.h"

#define WORDS 512u /* read at once */

struct scan {
  const struct mt_pointer *list;
  unsigned count, found;
  uintptr_t low, high; /* first and last original */
  bool safe;           /* what cannot be read is found out by trying */
};

static const struct mt_pointer *find_pointer(const struct scan *s, uintptr_t word) {
  if (word < s->low || word > s->high) return NULL;
  unsigned low = 0, high = s->count;
  while (low < high) {
    unsigned middle = low + (high - low) / 2;
    if (s->list[middle].original < word) low = middle + 1;
    else high = middle;
  }
  return low < s->count && s->list[low].original == word ? &s->list[low] : NULL;
}

/* The program may have made parts of its data unreadable, and may be writing to others. */
static void scan_range(struct scan *s, struct mt_range r) {
  uintptr_t words[WORDS];
  for (uintptr_t at = (r.start + 7) & ~(uintptr_t)7; at + sizeof *words <= r.end; at += sizeof words) {
    size_t n = (r.end - at) / sizeof *words;
    if (n > WORDS) n = WORDS;
    if (!s->safe) memcpy(words, (const void *)at, n * sizeof *words);
    else if (!mt_safe_read(words, at, n * sizeof *words)) continue;
    for (size_t i = 0; i < n; i++) {
      const struct mt_pointer *pointer = find_pointer(s, words[i]);
      uintptr_t seen = words[i];
      if (pointer && __atomic_compare_exchange_n((uintptr_t *)at + i, &seen, pointer->replacement, false,
                                                 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        s->found++;
    }
  }
}

static int scan_object(struct dl_phdr_info *info, size_t size, void *context) {
  struct scan *s = context;
  (void)size;
  if (mt_object_holds(info, (uintptr_t)&scan_object) || mt_object_holds(info, s->low)) return 0;
  struct mt_range relro = mt_object_relro(info);
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    struct mt_range r = {info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz};
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_W)) continue;
    if (relro.end > r.start && relro.end <= r.end) r.start = relro.end; /* RELRO is at the segment's beginning */
    scan_range(s, r);
  }
  return 0;
}

unsigned mt_pointers_replace(const struct mt_pointer *list, unsigned count) {
  if (!count) return 0;
  struct scan s = {list, count, 0, list[0].original, list[count - 1].original, mt_safe_read_possible()};
  dl_iterate_phdr(scan_object, &s);
  return s.found;
}
