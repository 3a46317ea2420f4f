#define _GNU_SOURCE
/* Names that NVTX calls bring, and the handles it keeps for some of them. */
#include <string.h>
#include <wchar.h>

#include "base/sys.h"
#include "base/thread.h"
#include "nvtx/nvtx.h"

static size_t room(const struct mt_nvtx_name *name) { return sizeof name->text - name->size; }

void mt_nvtx_add(struct mt_nvtx_name *name, const char *text) {
  if (!text) return;
  size_t n = strnlen(text, room(name));
  if (n == room(name) && text[n])
    while (n && (text[n] & 0xc0) == 0x80) n--;
  memcpy(name->text + name->size, text, n);
  name->size = (uint16_t)(name->size + n);
}

static size_t encode(uint32_t c, char out[4]) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
  if (c < 0x80) return out[0] = (char)c, 1;
  size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = n - 1; i; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(lead[n] | c);
  return n;
}

void mt_nvtx_add_wide(struct mt_nvtx_name *name, const wchar_t *text) {
  char one[4];
  for (; text && *text; text++) {
    size_t n = encode((uint32_t)*text, one);
    if (n > room(name)) return;
    memcpy(name->text + name->size, one, n);
    name->size = (uint16_t)(name->size + n);
  }
}

struct mt_nvtx_string {
  uint32_t hash;
  uint16_t kind;
  uint16_t size;
  char text[];
};

#define MT_NVTX_ARENA (4u << 20)
#define MT_NVTX_SLOTS 16384u
#define MT_NVTX_PROBES 64u

/* Entries are written before their offset is published, and never change: readers need no lock. Two threads that keep
 * the same name at once may both write it; one of them wins the slot. */
static char *arena;
static uint32_t arena_used;
static uint32_t slots[MT_NVTX_SLOTS]; /* offset + 1, 0 empty */
static const struct mt_nvtx_string nameless[] = {{0, 0, 0}, {0, MT_NVTX_TEXT, 0}, {0, MT_NVTX_DOMAIN, 0}};

static char *get_arena(void) {
  char *have = __atomic_load_n(&arena, __ATOMIC_ACQUIRE);
  if (have) return have;
  char *fresh = mt_sys_pages_alloc(MT_NVTX_ARENA);
  if (!fresh) return NULL;
  if (__atomic_compare_exchange_n(&arena, &have, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return fresh;
  mt_sys_pages_free(fresh, MT_NVTX_ARENA);
  return have;
}

static struct mt_nvtx_string *new_entry(size_t size) {
  char *base = get_arena();
  uint32_t used = __atomic_load_n(&arena_used, __ATOMIC_RELAXED), want;
  if (!base) return NULL;
  do {
    want = used + (uint32_t)((sizeof(struct mt_nvtx_string) + size + 7) & ~7ull);
    if (want > MT_NVTX_ARENA) return NULL;
  } while (!__atomic_compare_exchange_n(&arena_used, &used, want, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return (struct mt_nvtx_string *)(base + used);
}

static uint32_t hash_of(enum mt_nvtx_kind kind, const struct mt_nvtx_name *name) {
  uint32_t h = 2166136261u ^ kind;
  for (unsigned i = 0; i < name->size; i++) h = (h ^ (unsigned char)name->text[i]) * 16777619u;
  return h ^ h >> 15;
}

static struct mt_nvtx_string *entry_at(uint32_t slot) {
  return (struct mt_nvtx_string *)(__atomic_load_n(&arena, __ATOMIC_RELAXED) + (slot - 1));
}

const struct mt_nvtx_string *mt_nvtx_intern(enum mt_nvtx_kind kind, const struct mt_nvtx_name *name) {
  uint32_t hash = hash_of(kind, name);
  struct mt_nvtx_string *mine = NULL;
  for (uint32_t i = 0; i < MT_NVTX_PROBES && name->size; i++) {
    uint32_t *slot = &slots[(hash + i) % MT_NVTX_SLOTS], have = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (!have) {
      if (!mine && !(mine = new_entry(name->size))) break;
      mine->hash = hash;
      mine->kind = (uint16_t)kind;
      mine->size = name->size;
      memcpy(mine->text, name->text, name->size);
      uint32_t offset = (uint32_t)((char *)mine - __atomic_load_n(&arena, __ATOMIC_RELAXED)) + 1;
      if (__atomic_compare_exchange_n(slot, &have, offset, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return mine;
    }
    struct mt_nvtx_string *entry = entry_at(have);
    if (entry->hash == hash && entry->kind == kind && entry->size == name->size &&
        !memcmp(entry->text, name->text, name->size))
      return entry;
  }
  return &nameless[kind];
}

/* The entry if the handle is one that was published: a garbage handle must not be followed. */
static const struct mt_nvtx_string *entry_of(enum mt_nvtx_kind kind, const void *handle) {
  const char *base = __atomic_load_n(&arena, __ATOMIC_ACQUIRE);
  uintptr_t offset = (uintptr_t)handle - (uintptr_t)base;
  if (!base || offset % 8 || offset >= __atomic_load_n(&arena_used, __ATOMIC_ACQUIRE)) return NULL;
  const struct mt_nvtx_string *entry = handle;
  return entry->kind == kind && entry->size <= MEMTRACE_NAME_MAX &&
                 offset + sizeof *entry + entry->size <= MT_NVTX_ARENA
             ? entry
             : NULL;
}

size_t mt_nvtx_text(enum mt_nvtx_kind kind, const void *handle, const char **text) {
  const struct mt_nvtx_string *entry = entry_of(kind, handle);
  *text = entry ? entry->text : "";
  return entry ? entry->size : 0;
}

/* Level owners: 0 is the program itself, 1 NVTX's default domain, 2 all domains that found no room or are none. */
uint32_t mt_nvtx_owner(const void *domain) {
  if (!domain) return 1;
  const struct mt_nvtx_string *entry = entry_of(MT_NVTX_DOMAIN, domain);
  return entry ? 3 + (uint32_t)((const char *)entry - __atomic_load_n(&arena, __ATOMIC_RELAXED)) : 2;
}
