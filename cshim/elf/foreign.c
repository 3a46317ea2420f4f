#define _GNU_SOURCE
#include "elf/foreign.h"

#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#pragma weak gnu_get_libc_version

bool mt_foreign_libc(void) { return !gnu_get_libc_version; }

struct search {
  const char *name;
  void *found;
};

/* An object's own symbols. */
struct table {
  const ElfW(Sym) *symbols;
  const char *strings;
  const uint32_t *hash;     /* DT_HASH: bucket and symbol counts, then their words */
  const uint32_t *gnu_hash; /* DT_GNU_HASH */
};

/* The loader of musl leaves the addresses in a dynamic section relative. */
static const void *at(const struct dl_phdr_info *object, uintptr_t value) {
  return (const void *)(value < object->dlpi_addr ? object->dlpi_addr + value : value);
}

static bool read_table(const struct dl_phdr_info *object, struct table *t) {
  memset(t, 0, sizeof *t);
  for (int i = 0; i < object->dlpi_phnum; i++) {
    if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    for (const ElfW(Dyn) *d = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr); d->d_tag != DT_NULL;
         d++)
      switch (d->d_tag) {
        case DT_SYMTAB: t->symbols = at(object, d->d_un.d_ptr); break;
        case DT_STRTAB: t->strings = at(object, d->d_un.d_ptr); break;
        case DT_HASH: t->hash = at(object, d->d_un.d_ptr); break;
        case DT_GNU_HASH: t->gnu_hash = at(object, d->d_un.d_ptr); break;
      }
  }
  return t->symbols && t->strings && (t->hash || t->gnu_hash);
}

/* One past the last symbol. DT_GNU_HASH does not state the count: the longest chain ends there. */
static uint32_t symbol_count(const struct table *t) {
  if (t->hash) return t->hash[1];
  uint32_t buckets = t->gnu_hash[0], first = t->gnu_hash[1], last = 0;
  const uint32_t *bucket = t->gnu_hash + 4 + t->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
  for (uint32_t i = 0; i < buckets; i++)
    if (bucket[i] > last) last = bucket[i];
  if (last < first) return first;
  while (!(chain[last - first] & 1)) last++;
  return last + 1;
}

static bool is_own(const struct dl_phdr_info *object) {
  uintptr_t here = (uintptr_t)&is_own;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &object->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && here - object->dlpi_addr - p->p_vaddr < p->p_memsz) return true;
  }
  return false;
}

static int find_in_object(struct dl_phdr_info *object, size_t size, void *argument) {
  (void)size;
  struct search *s = argument;
  struct table t;
  if (is_own(object) || !read_table(object, &t)) return 0;
  for (uint32_t i = 1, count = symbol_count(&t); i < count; i++) {
    const ElfW(Sym) *symbol = &t.symbols[i];
    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
        strcmp(t.strings + symbol->st_name, s->name))
      continue;
    s->found = (void *)(object->dlpi_addr + symbol->st_value);
    return 1;
  }
  return 0;
}

void *mt_foreign_find(const char *name) {
  struct search s = {name, NULL};
  dl_iterate_phdr(find_in_object, &s);
  return s.found;
}
