#define _GNU_SOURCE
#include "hooks/group.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "elf/symbol.h"
#include "spool/module.h"

#define MT_GROUP_OBJECTS 2048u

enum { LOADS_CALLER = 1, LOADS_OTHER = 2 };

/* A loaded object, as long as the loader's lock is held. */
struct object {
  struct mt_loaded loaded;
  const char *path;
  uint8_t marks;
};

static struct {
  unsigned count;
  struct object object[MT_GROUP_OBJECTS];
} group;
static uint32_t busy; /* some C libraries let several threads iterate at once */

/* The dynamic section holds addresses, or offsets where the loader leaves it alone. */
static const char *strings_of(const struct object *o) {
  for (const ElfW(Dyn) *entry = o->loaded.dynamic; entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_STRTAB)
      return (const char *)(entry->d_un.d_ptr < o->loaded.base ? entry->d_un.d_ptr + o->loaded.base
                                                               : entry->d_un.d_ptr);
  return NULL;
}

static const char *file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool has_soname(const struct object *o, const char *needed) {
  const char *strings = strings_of(o);
  for (const ElfW(Dyn) *entry = o->loaded.dynamic; strings && entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_SONAME && !strcmp(strings + entry->d_un.d_val, needed)) return true;
  return !strcmp(file_of(o->path), file_of(needed));
}

static bool needs_marked(const struct object *o, uint8_t mark) {
  const char *strings = strings_of(o);
  for (const ElfW(Dyn) *entry = o->loaded.dynamic; strings && entry && entry->d_tag != DT_NULL; entry++)
    for (unsigned i = 0; entry->d_tag == DT_NEEDED && i < group.count; i++)
      if (group.object[i].marks & mark && has_soname(&group.object[i], strings + entry->d_un.d_val)) return true;
  return false;
}

/* Marks all that loaded what has the mark. */
static void mark_loaders(uint8_t mark) {
  for (bool more = true; more;) {
    more = false;
    for (unsigned i = 0; i < group.count; i++) {
      struct object *o = &group.object[i];
      if (!(o->marks & mark) && needs_marked(o, mark)) o->marks |= mark, more = true;
    }
  }
}

static void mark_caller(const struct link_map *caller) {
  for (unsigned i = 0; i < group.count; i++)
    if (group.object[i].loaded.dynamic == caller->l_ld) group.object[i].marks = LOADS_CALLER;
  mark_loaders(LOADS_CALLER);
}

static bool loaded_together(struct object *other) {
  for (unsigned i = 0; i < group.count; i++) group.object[i].marks &= (uint8_t)~LOADS_OTHER;
  other->marks |= LOADS_OTHER;
  mark_loaders(LOADS_OTHER);
  for (unsigned i = 0; i < group.count; i++)
    if (group.object[i].marks == (LOADS_CALLER | LOADS_OTHER)) return true;
  return false;
}

static int collect(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (group.count == MT_GROUP_OBJECTS) return 1;
  struct object *o = &group.object[group.count];
  *o = (struct object){{info->dlpi_addr, NULL}, info->dlpi_name, 0};
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      o->loaded.dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  group.count += o->loaded.dynamic != NULL;
  return 0;
}

/* The functions of that name are searched first: in most programs there is none, and marking takes long. The libraries
 * that the program itself is linked to were loaded before any group, and find nothing in one. */
static void *look_for(const struct link_map *caller, const struct link_map *ours, const char *name) {
  bool marked = false;
  for (unsigned i = 0; i < group.count; i++) {
    struct object *o = &group.object[i];
    uintptr_t defined = o->loaded.dynamic != ours->l_ld ? mt_symbol_find(&o->loaded, name) : 0;
    if (!defined) continue;
    if (!marked) mark_caller(caller);
    marked = true;
    if (!(group.object[0].marks & LOADS_CALLER) && loaded_together(o)) return (void *)defined;
  }
  return NULL;
}

struct wanted {
  const struct link_map *caller, *ours;
  const char *name;
  void *found;
};

/* Called for the first object, and there does everything: nothing can be unloaded meanwhile. */
static int search(struct dl_phdr_info *info, size_t size, void *what) {
  (void)info, (void)size;
  struct wanted *wanted = what;
  group.count = 0;
  dl_iterate_phdr(collect, NULL);
  wanted->found = look_for(wanted->caller, wanted->ours, wanted->name);
  return 1;
}

void *mt_group_find(const struct link_map *caller, const char *name) {
  struct wanted wanted = {caller, mt_module_find((uintptr_t)mt_group_find), name, NULL};
  if (!caller || !wanted.ours || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) return NULL;
  dl_iterate_phdr(search, &wanted);
  __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
  return wanted.found;
}
