#define _GNU_SOURCE
#include "spool/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/atload.h"
#include "base/config.h"
#include "base/sys.h"
#include "elf/relocation.h"
#include "spool/dict.h"

/* Weak: glibc before 2.35 lacks it, and an undefined symbol here would end every program at its start. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

#pragma weak dladdr1

#define MT_MODULES 1024u

/* Start addresses of recorded modules; 0 is an empty slot. Threads that find a module at the same time write it twice,
 * which costs some bytes and nothing else. */
static uintptr_t recorded[MT_MODULES];
#define TOMBSTONE ((uintptr_t)1)

uint32_t mt_module_generation;

static void (*listener[MT_MODULE_LISTENERS])(const struct link_map *map) MT_AT_LOAD;
static unsigned listeners MT_AT_LOAD;

void mt_module_on_discovery(void (*on_discovery)(const struct link_map *map)) {
  if (listeners < MT_MODULE_LISTENERS) listener[listeners++] = on_discovery;
}

void mt_module_start(void) { memset(recorded, 0, sizeof recorded); }

/* The end of the object, which dladdr(3) does not report, from its program headers. */
static uintptr_t end_of(uintptr_t start, const struct link_map *map, uintptr_t pc) {
  const ElfW(Ehdr) *header = (const void *)start;
  uintptr_t end = pc + 1;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_phentsize != sizeof(ElfW(Phdr))) return end;
  const ElfW(Phdr) *p = (const void *)(start + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; i++) {
    uintptr_t stop = map->l_addr + p[i].p_vaddr + p[i].p_memsz;
    if (p[i].p_type == PT_LOAD && stop > end) end = stop;
  }
  return end;
}

static bool find(uintptr_t pc, uintptr_t *start, uintptr_t *end, struct link_map **map) {
  if (_dl_find_object) {
    struct dl_find_object o;
    if (_dl_find_object((void *)pc, &o)) return false;
    *start = (uintptr_t)o.dlfo_map_start;
    *end = (uintptr_t)o.dlfo_map_end;
    *map = o.dlfo_link_map;
    return true;
  }
  Dl_info info;
  if (!dladdr1 || !dladdr1((void *)pc, &info, (void **)map, RTLD_DL_LINKMAP) || !*map) return false;
  *start = (uintptr_t)info.dli_fbase;
  *end = end_of(*start, *map, pc);
  return true;
}

struct link_map *mt_module_find(uintptr_t pc) {
  uintptr_t start, end;
  struct link_map *map = NULL;
  return find(pc, &start, &end, &map) ? map : NULL;
}

bool mt_module_is_cuda(uintptr_t pc) {
  struct link_map *map = mt_module_find(pc);
  if (!map) return false;
  const char *slash = strrchr(map->l_name, '/'), *name = slash ? slash + 1 : map->l_name;
  return !strncmp(name, "libcuda.so", 10) || !strncmp(name, "libcudart.so", 12) || !strncmp(name, "libcudart-", 10);
}

static bool is_named(const struct mt_relocation *relocation, void *name) { return !strcmp(relocation->name, name); }

bool mt_module_imports(const struct link_map *map, const char *name) {
  return mt_relocation_each(&(struct mt_loaded){map->l_addr, map->l_ld}, is_named, (void *)name);
}

/* The slot of start, or a free one; NULL if the table is full, which is far larger than any program's module count. */
static uintptr_t *find_slot(uintptr_t start) {
  uint32_t slot = (uint32_t)((start >> 12) * 2654435761u) % MT_MODULES;
  uintptr_t *place = NULL;
  for (uint32_t i = 0; i < MT_MODULES; i++, slot = (slot + 1) % MT_MODULES) {
    uintptr_t have = __atomic_load_n(&recorded[slot], __ATOMIC_ACQUIRE);
    if (have == start) return &recorded[slot];
    if (!place && have <= TOMBSTONE) place = &recorded[slot];
    if (!have) break;
  }
  return place;
}

static void mark_recorded(uintptr_t start) {
  for (uintptr_t *place = find_slot(start); place; place = find_slot(start)) {
    uintptr_t have = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (have == start || (have <= TOMBSTONE &&
                          __atomic_compare_exchange_n(place, &have, start, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)))
      return;
  }
}

unsigned mt_module_drop_unloaded(void) {
  unsigned gone = 0;
  for (unsigned i = 0; i < MT_MODULES; i++) {
    uintptr_t start = __atomic_load_n(&recorded[i], __ATOMIC_RELAXED);
    if (start <= TOMBSTONE || mt_module_find(start)) continue;
    gone += __atomic_compare_exchange_n(&recorded[i], &start, TOMBSTONE, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  __atomic_add_fetch(&mt_module_generation, 1, __ATOMIC_RELAXED);
  return gone;
}

/* The build-id note, read from the mapped program headers; size 0 if there is none. */
static struct mt_bytes build_id(uintptr_t start, uintptr_t end, uintptr_t base) {
  const ElfW(Ehdr) *header = (const void *)start;
  if (end - start < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
      header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > end - start)
    return (struct mt_bytes){0};
  const ElfW(Phdr) *p = (const void *)(start + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; i++) {
    uintptr_t at = base + p[i].p_vaddr, stop = at + p[i].p_memsz;
    if (p[i].p_type != PT_NOTE || at < start || stop > end) continue;
    while (at + sizeof(ElfW(Nhdr)) <= stop) {
      const ElfW(Nhdr) *note = (const void *)at;
      uintptr_t name = at + sizeof *note, desc = name + ((note->n_namesz + 3u) & ~3u);
      if (desc + note->n_descsz > stop) break;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp((void *)name, "GNU", 4))
        return (struct mt_bytes){(void *)desc, note->n_descsz};
      at = desc + ((note->n_descsz + 3u) & ~3u);
    }
  }
  return (struct mt_bytes){0};
}

#define PROGRAM "/proc/self/exe"

static __attribute__((noinline)) void write_module(const struct link_map *map, uintptr_t start, uintptr_t end) {
  char program[MT_PATH_MAX];
  const char *path = map->l_name;
  size_t length = strlen(path);
  if (!length) {
    ssize_t n = mt_sys_readlink(PROGRAM, program, sizeof program);
    path = program;
    length = n > 0 ? (size_t)n : 0;
  }
  struct mt_bytes id = build_id(start, end, map->l_addr);
  struct stat file = {0};
  if (mt_sys_stat(map->l_name[0] ? path : PROGRAM, &file)) file = (struct stat){0};
  uint64_t range[5] = {start, end, map->l_addr, (uint64_t)file.st_size,
                       (uint64_t)file.st_mtim.tv_sec * 1000000000ull + (uint64_t)file.st_mtim.tv_nsec};
  uint32_t sizes[2] = {(uint32_t)id.size, (uint32_t)length};
  mt_dict_append(MT_DICT_MODULE, (struct mt_bytes[]){{range, sizeof range}, {sizes, sizeof sizes}, id, {path, length}},
                 4);
}

/* Marked as recorded after it was written: a thread that finds the mark writes its stack at once, and a module must
 * precede the stacks that run through it. */
void mt_module_record(uintptr_t pc) {
  uintptr_t start, end;
  struct link_map *map;
  if (!find(pc, &start, &end, &map)) return;
  const uintptr_t *place = find_slot(start);
  if (!place || __atomic_load_n(place, __ATOMIC_ACQUIRE) == start) return;
  for (unsigned i = 0; i < listeners; i++) listener[i](map);
  write_module(map, start, end);
  mark_recorded(start);
}
