#define _GNU_SOURCE
#include "process/relocate.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sys.h"
#include "process/goend.h"

/* Filled in by tools/patchruntime after linking: where in this object the deferred part of the relocation table is, how
 * many entries it has, and whether the runtime was patched to leave signals and the process alone. */
struct mt_lazy_rela {
  uint64_t offset;
  uint64_t count;
  uint64_t quiet;
  void (*ended)(void); /* where patchruntime leads the runtime's exit and abort */
};
__attribute__((section("mt_lazy_rela"), used)) static volatile struct mt_lazy_rela lazy = {0, 0, 0, mt_go_ended};

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* The part that the loader made read-only after its own relocations. */
static bool find_relro(uintptr_t base, uintptr_t *start, uintptr_t *end) {
  const ElfW(Ehdr) *header = (const void *)base;
  const ElfW(Phdr) *p = (const void *)(base + header->e_phoff);
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (unsigned i = 0; i < header->e_phnum; i++) {
    if (p[i].p_type != PT_GNU_RELRO) continue;
    *start = (base + p[i].p_vaddr) & -page;
    *end = (base + p[i].p_vaddr + p[i].p_memsz) & -page;
    return *end > *start;
  }
  return false;
}

bool mt_relocate_go(void) {
  static bool done;
  uintptr_t base = (uintptr_t)__ehdr_start, start = 0, end = 0;
  if (done || !lazy.count) return true;
  bool read_only = find_relro(base, &start, &end);
  if (read_only && mt_sys_mprotect((void *)start, end - start, PROT_READ | PROT_WRITE)) return false;
  const ElfW(Rela) *r = (const void *)(base + lazy.offset);
  for (uint64_t i = 0; i < lazy.count; i++) *(uint64_t *)(base + r[i].r_offset) = base + (uint64_t)r[i].r_addend;
  if (read_only)
    mt_sys_mprotect((void *)start, end - start, PROT_READ); /* a refusal leaves data writable that is never written */
  return done = true;
}

bool mt_go_is_quiet(void) { return lazy.quiet != 0; }
