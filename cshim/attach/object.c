#define _GNU_SOURCE
#include "attach/object.h"

#include <unistd.h>

bool mt_object_holds(const struct dl_phdr_info *object, uintptr_t address) {
  for (unsigned i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &object->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && address - object->dlpi_addr - p->p_vaddr < p->p_memsz) return true;
  }
  return false;
}

struct mt_range mt_object_relro(const struct dl_phdr_info *object) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (unsigned i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &object->dlpi_phdr[i];
    uintptr_t start = object->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_GNU_RELRO) return (struct mt_range){start & -page, (start + p->p_memsz) & -page};
  }
  return (struct mt_range){0};
}
