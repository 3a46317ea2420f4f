#define _GNU_SOURCE
#include "elf/tlsword.h"

#include <stddef.h>

/* The loader's, by the ABI of thread-local storage: number of the object, offset in its block. */
struct index {
  unsigned long module, offset;
};
extern void *__tls_get_addr(struct index *) __attribute__((weak));

const uint64_t *mt_tlsblock_here(const struct mt_tlsblock *block) {
  return block->module ? __tls_get_addr(&(struct index){block->module, 0}) : NULL;
}

struct mt_tlsblock mt_tlsblock_of(const struct dl_phdr_info *info, size_t size) {
  struct mt_tlsblock block = {0};
  if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data || !info->dlpi_tls_data ||
      !__tls_get_addr)
    return block;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_phdr[i].p_memsz / sizeof(uint64_t) <= MT_TLSWORD_MAX) {
      block = (struct mt_tlsblock){info->dlpi_tls_modid, (uint32_t)(info->dlpi_phdr[i].p_memsz / sizeof(uint64_t))};
      if ((uintptr_t)info->dlpi_tls_data % sizeof(uint64_t) ||
          (const void *)mt_tlsblock_here(&block) != info->dlpi_tls_data)
        block.module = 0;
    }
  return block;
}

static bool is_out(const struct mt_tlsword *search, uint32_t word) { return search->out[word / 64] >> word % 64 & 1; }

void mt_tlsword_narrow(struct mt_tlsword *search, const struct mt_tlsblock *block, uint64_t value) {
  const uint64_t *here = mt_tlsblock_here(block);
  for (uint32_t word = 0; here && word < block->words; word++)
    if (here[word] != value) search->out[word / 64] |= 1ull << word % 64;
}

uint32_t mt_tlsword_found(const struct mt_tlsword *search, const struct mt_tlsblock *block) {
  uint32_t found = MT_TLSWORD_NONE;
  for (uint32_t word = 0; block->module && word < block->words; word++) {
    if (is_out(search, word)) continue;
    if (found != MT_TLSWORD_NONE) return MT_TLSWORD_NONE;
    found = word;
  }
  return found;
}

void mt_tlsbit_narrow(struct mt_tlsbit *search, const struct mt_tlsblock *block, bool flag) {
  const uint64_t *here = block->words <= MT_TLSBIT_MAX ? mt_tlsblock_here(block) : NULL;
  if (!here) return;
  bool is_first = !search->was[0] && !search->was[1];
  for (uint32_t word = 0; word < block->words; word++) {
    if (is_first) search->first[word] = here[word];
    search->changed[word] |= here[word] ^ search->first[word];
    search->out[word] |= flag ? ~here[word] : here[word];
  }
  search->was[flag] = true;
}

uint32_t mt_tlsbit_found(const struct mt_tlsbit *search, const struct mt_tlsblock *block) {
  uint32_t found = MT_TLSWORD_NONE;
  for (uint32_t word = 0; search->was[0] && search->was[1] && word < block->words; word++) {
    uint64_t changed = search->changed[word];
    if (!changed || changed & (changed - 1) || changed & search->out[word]) continue;
    if (found != MT_TLSWORD_NONE) return MT_TLSWORD_NONE;
    found = word * 64 + (uint32_t)__builtin_ctzll(changed);
  }
  return found;
}
