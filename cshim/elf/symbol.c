#define _GNU_SOURCE
#include "elf/symbol.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

/* What a look-up needs of an object's dynamic section. */
struct tables {
  const ElfW(Sym) *symbols;
  const char *strings;
  const uint32_t *gnu; /* words: buckets, first hashed symbol, bloom words, bloom shift; then the bloom filter, the
                          buckets, the chains */
  const uint32_t *sysv; /* words: buckets, chains; then both */
};

/* The dynamic section holds addresses, or offsets where the loader leaves it alone. */
static const void *at(const struct mt_loaded *object, uintptr_t value) {
  return (const void *)(value < object->base ? value + object->base : value);
}

static bool read_tables(const struct mt_loaded *object, struct tables *t) {
  *t = (struct tables){0};
  for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++) switch (entry->d_tag) {
      case DT_SYMTAB: t->symbols = at(object, entry->d_un.d_ptr); break;
      case DT_STRTAB: t->strings = at(object, entry->d_un.d_ptr); break;
      case DT_GNU_HASH: t->gnu = at(object, entry->d_un.d_ptr); break;
      case DT_HASH: t->sysv = at(object, entry->d_un.d_ptr); break;
    }
  return t->symbols && t->strings;
}

static bool defines(const struct tables *t, uint32_t index, const char *name) {
  const ElfW(Sym) *symbol = &t->symbols[index];
  unsigned type = ELF64_ST_TYPE(symbol->st_info);
  return symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
         (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE) && !strcmp(t->strings + symbol->st_name, name);
}

static uint32_t find_gnu(const struct tables *t, const char *name) {
  uint32_t hash = 5381;
  for (const unsigned char *c = (const void *)name; *c; c++) hash = hash * 33 + *c;
  uint32_t buckets = t->gnu[0], first = t->gnu[1], words = t->gnu[2], shift = t->gnu[3];
  if (!buckets || !words) return 0;
  const ElfW(Addr) *bloom = (const void *)(t->gnu + 4);
  unsigned bits = 8 * sizeof *bloom;
  ElfW(Addr) word = bloom[hash / bits % words],
             wanted = (ElfW(Addr))1 << hash % bits | (ElfW(Addr))1 << (hash >> shift) % bits;
  if ((word & wanted) != wanted) return 0;
  const uint32_t *bucket = (const void *)(bloom + words), *chain = bucket + buckets;
  uint32_t index = bucket[hash % buckets];
  if (index < first) return 0;
  for (;; index++) {
    uint32_t have = chain[index - first];
    if ((have | 1) == (hash | 1) && defines(t, index, name)) return index;
    if (have & 1) return 0;
  }
}

static uint32_t find_sysv(const struct tables *t, const char *name) {
  uint32_t hash = 0;
  for (const unsigned char *c = (const void *)name; *c; c++) {
    hash = (hash << 4) + *c;
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  uint32_t buckets = t->sysv[0], chains = t->sysv[1];
  const uint32_t *bucket = t->sysv + 2, *chain = bucket + buckets;
  if (!buckets) return 0;
  for (uint32_t index = bucket[hash % buckets]; index && index < chains; index = chain[index])
    if (defines(t, index, name)) return index;
  return 0;
}

uintptr_t mt_symbol_find(const struct mt_loaded *object, const char *name) {
  struct tables t;
  if (!read_tables(object, &t)) return 0;
  uint32_t index = t.gnu ? find_gnu(&t, name) : t.sysv ? find_sysv(&t, name) : 0;
  return index ? object->base + t.symbols[index].st_value : 0;
}

struct search {
  const char *file;
  struct mt_loaded found;
};

static int match(struct dl_phdr_info *info, size_t size, void *what) {
  struct search *search = what;
  const char *slash = strrchr(info->dlpi_name, '/');
  (void)size;
  if (!slash || strcmp(slash + 1, search->file)) return 0;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      search->found = (struct mt_loaded){info->dlpi_addr, (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr)};
  return 1;
}

struct mt_loaded mt_symbol_object(const char *file) {
  struct search search = {file, {0, NULL}};
  dl_iterate_phdr(match, &search);
  return search.found;
}
