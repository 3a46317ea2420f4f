#define _GNU_SOURCE
#include "elf/relocation.h"

#include <elf.h>
#include <stddef.h>

#if defined(__x86_64__)
#define MT_R_TABLE_CALL R_X86_64_JUMP_SLOT
#define MT_R_TABLE_DATA R_X86_64_GLOB_DAT
#define MT_R_ADDRESS R_X86_64_64
#elif defined(__aarch64__)
#define MT_R_TABLE_CALL R_AARCH64_JUMP_SLOT
#define MT_R_TABLE_DATA R_AARCH64_GLOB_DAT
#define MT_R_ADDRESS R_AARCH64_ABS64
#else
#error "name the relocations of this architecture"
#endif

struct tables {
  const ElfW(Sym) *symbols;
  const char *strings;
  const ElfW(Rela) *list[2]; /* of calls, of data */
  size_t bytes[2];
};

/* The dynamic section holds addresses, or offsets where the loader leaves it alone. */
static const void *at(const struct mt_loaded *object, uintptr_t value) {
  return (const void *)(value < object->base ? value + object->base : value);
}

static struct tables read_tables(const struct mt_loaded *object) {
  struct tables t = {0};
  for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++) switch (entry->d_tag) {
      case DT_SYMTAB: t.symbols = at(object, entry->d_un.d_ptr); break;
      case DT_STRTAB: t.strings = at(object, entry->d_un.d_ptr); break;
      case DT_JMPREL: t.list[0] = at(object, entry->d_un.d_ptr); break;
      case DT_PLTRELSZ: t.bytes[0] = entry->d_un.d_val; break;
      case DT_RELA: t.list[1] = at(object, entry->d_un.d_ptr); break;
      case DT_RELASZ: t.bytes[1] = entry->d_un.d_val; break;
    }
  return t;
}

bool mt_relocation_each(const struct mt_loaded *object, bool (*visit)(const struct mt_relocation *, void *),
                        void *context) {
  struct tables t = read_tables(object);
  for (int kind = 0; t.symbols && t.strings && kind < 2; kind++)
    for (size_t i = 0; t.list[kind] && i < t.bytes[kind] / sizeof(ElfW(Rela)); i++) {
      const ElfW(Rela) *r = &t.list[kind][i];
      size_t symbol = ELF64_R_SYM(r->r_info);
      unsigned type = ELF64_R_TYPE(r->r_info);
      bool table = type == MT_R_TABLE_CALL || type == MT_R_TABLE_DATA;
      if (!symbol || (!table && (type != MT_R_ADDRESS || r->r_addend))) continue;
      struct mt_relocation found = {(uintptr_t *)(object->base + r->r_offset), t.strings + t.symbols[symbol].st_name,
                                    table};
      if (visit(&found, context)) return true;
    }
  return false;
}
