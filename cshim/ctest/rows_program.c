/* Prints what the unwinder makes of addresses of a library that it maps but does not load: reads one address of the
 * file a line, as the linker numbered it, and answers KIND CFA BP CALLER. scripts/check-rows.py compares that with what
 * readelf says. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/unwindrow.h"

static struct mt_frame_table table;
static uintptr_t base;

static bool map_file(const char *path) {
  struct stat s;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &s)) return false;
  uint8_t *file = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (file == MAP_FAILED) return false;
  const ElfW(Ehdr) *header = (const void *)file;
  const ElfW(Phdr) *p = (const void *)(file + header->e_phoff), *frames = NULL;
  for (unsigned i = 0; i < header->e_phnum; i++)
    if (p[i].p_type == PT_GNU_EH_FRAME) frames = &p[i];
  for (unsigned i = 0; frames && i < header->e_phnum; i++) {
    if (p[i].p_type != PT_LOAD || frames->p_vaddr < p[i].p_vaddr || frames->p_vaddr >= p[i].p_vaddr + p[i].p_filesz)
      continue;
    base = (uintptr_t)file + p[i].p_offset - p[i].p_vaddr;
    table = (struct mt_frame_table){(uint8_t *)base + frames->p_vaddr, file + p[i].p_offset,
                                    file + p[i].p_offset + p[i].p_filesz};
    return true;
  }
  return false;
}

static void print(const struct mt_value *v) {
  static const char *const names[] = {"", "rsp", "rbp", "c"};
  printf(v->load ? " *(%s%+d)%+d" : " %s%+d", names[v->base], v->inner, v->add);
}

int main(int argc, char **argv) {
  unsigned long address;
  static const char *const kinds[] = {"", "step", "realigned", "outermost", "none", "unsupported"};
  if (argc != 2 || !map_file(argv[1]))
    return fprintf(stderr, "usage: rows_program LIBRARY <ADDRESSES (hexadecimal, one a line)\n"), 2;
  while (scanf("%lx", &address) == 1) {
    struct mt_frame_entry entry;
    struct mt_unwind_row row = {.kind = MT_ROW_NONE};
    if (mt_frame_entry_find(&table, base + address, &entry)) row = mt_unwind_row(&entry, base + address);
    printf("%s", kinds[row.kind]);
    if (row.kind == MT_ROW_STEP) print(&row.cfa), print(&row.bp), print(&row.caller);
    puts("");
  }
  return 0;
}
