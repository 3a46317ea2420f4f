#include "elf/frametable.h"

#include <stddef.h>

/* Encodings of pointers: the lower half says how wide, the upper one what they are relative to. */
enum {
  PTR_ABSOLUTE = 0x00,
  PTR_ULEB = 0x01,
  PTR_U16 = 0x02,
  PTR_U32 = 0x03,
  PTR_U64 = 0x04,
  PTR_SLEB = 0x09,
  PTR_S16 = 0x0a,
  PTR_S32 = 0x0b,
  PTR_S64 = 0x0c
};
enum {
  PTR_WIDTH = 0x0f,
  PTR_FROM_HERE = 0x10,
  PTR_FROM_HEADER = 0x30,
  PTR_ALIGNED = 0x50,
  PTR_RELATIVE = 0x70,
  PTR_INDIRECT = 0x80,
  PTR_OMITTED = 0xff
};

#define TABLE_VERSION 1
#define TABLE_ENTRY \
  (PTR_FROM_HEADER | PTR_S32) /* what every linker writes: pairs of function and entry, sorted by function */
#define EXTENDED_LENGTH 0xffffffffu

uintptr_t mt_frame_pointer(struct mt_cursor *c, uint8_t encoding) {
  uint64_t value;
  if ((encoding & PTR_RELATIVE) == PTR_ALIGNED) {
    mt_cursor_skip(c, -(uintptr_t)c->at & (sizeof(uintptr_t) - 1));
    return mt_cursor_u64(c);
  }
  uintptr_t here = (uintptr_t)c->at;
  switch (encoding & PTR_WIDTH) {
    case PTR_ABSOLUTE: case PTR_U64: case PTR_S64: value = mt_cursor_u64(c); break;
    case PTR_ULEB: value = mt_cursor_uleb(c); break;
    case PTR_U16: value = mt_cursor_u16(c); break;
    case PTR_U32: value = mt_cursor_u32(c); break;
    case PTR_SLEB: value = (uint64_t)mt_cursor_sleb(c); break;
    case PTR_S16: value = (uint64_t)(int16_t)mt_cursor_u16(c); break;
    case PTR_S32: value = (uint64_t)(int32_t)mt_cursor_u32(c); break;
    default: c->torn = true; return 0;
  }
  switch (encoding & (PTR_RELATIVE | PTR_INDIRECT)) {
    case PTR_ABSOLUTE: return value;
    case PTR_FROM_HERE: return value + here;
    default: c->torn = true; return 0;
  }
}

struct table_entry {
  int32_t function, entry; /* relative to the header */
};

/* The sorted table; count is 0 if there is none. It lies behind four bytes that say how it is written, and the address
 * of what it indexes. */
static const uint8_t *sorted_table(const struct mt_frame_table *table, size_t *count) {
  struct mt_cursor c = {table->header, table->end, false};
  *count = 0;
  if (table->header < table->start || table->header >= table->end) return NULL;
  uint8_t version = mt_cursor_u8(&c), frame = mt_cursor_u8(&c), number = mt_cursor_u8(&c), entry = mt_cursor_u8(&c);
  if (c.torn || version != TABLE_VERSION || entry != TABLE_ENTRY || number == PTR_OMITTED) return NULL;
  if (frame != PTR_OMITTED) mt_frame_pointer(&c, frame);
  uint64_t entries = mt_frame_pointer(&c, number);
  if (c.torn || entries > (uint64_t)(c.end - c.at) / sizeof(struct table_entry)) return NULL;
  *count = (size_t)entries;
  return c.at;
}

static struct table_entry entry_at(const uint8_t *sorted, size_t i) {
  struct table_entry e;
  memcpy(&e, sorted + i * sizeof e, sizeof e);
  return e;
}

/* The address of the last entry that begins at or before the address, NULL if there is none. */
static const uint8_t *find_sorted(const struct mt_frame_table *table, uintptr_t pc) {
  size_t low = 0, high;
  const uint8_t *sorted = sorted_table(table, &high);
  int64_t wanted = (int64_t)(pc - (uintptr_t)table->header);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (entry_at(sorted, middle).function <= wanted)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low) return NULL;
  uintptr_t at = (uintptr_t)table->header + (uintptr_t)(intptr_t)entry_at(sorted, low - 1).entry;
  return at >= (uintptr_t)table->start && at < (uintptr_t)table->end ? (const uint8_t *)at : NULL;
}

/* What follows an entry's length word. */
static struct mt_cursor body_at(const struct mt_frame_table *table, const uint8_t *at) {
  struct mt_cursor c = {at, table->end, false};
  uint32_t length = mt_cursor_u32(&c);
  struct mt_cursor body = mt_cursor_part(&c, length);
  body.torn = c.torn || !length || length == EXTENDED_LENGTH;
  return body;
}

/* The letters of an augmentation say what its data hold, in that order. An unknown one ends what can be read of them;
 * their length lets us go on behind. */
static void read_augmentation(struct mt_cursor *data, const char *letters, struct mt_frame_entry *e) {
  for (; *letters; letters++) switch (*letters) {
      case 'R': e->encoding = mt_cursor_u8(data); break;
      case 'L': mt_cursor_u8(data); break;
      case 'P': {
        uint8_t encoding = mt_cursor_u8(data); /* a personality: skipped, and so read as if it were absolute */
        mt_frame_pointer(data, (encoding & PTR_RELATIVE) == PTR_ALIGNED ? PTR_ALIGNED : encoding & PTR_WIDTH);
        break;
      }
      case 'S': e->signal = true; break;
      case 'B': case 'G': break; /* aarch64: key of signed return addresses, tagged stack */
      default: return;
    }
}

static bool read_shared(const struct mt_frame_table *table, const uint8_t *at, struct mt_frame_entry *e,
                        bool *augmented) {
  struct mt_cursor c = body_at(table, at);
  if (mt_cursor_u32(&c)) return false; /* not a shared part */
  uint8_t version = mt_cursor_u8(&c);
  const char *letters = (const char *)c.at;
  while (!c.torn && mt_cursor_u8(&c)) continue;
  if (c.torn || (version != 1 && version != 3 && version != 4)) return false;
  if (letters[0] == 'e' && letters[1] == 'h') mt_cursor_u64(&c), letters += 2; /* of the compilers of the nineties */
  if (version == 4 && (mt_cursor_u8(&c) != sizeof(void *) || mt_cursor_u8(&c))) return false;
  e->code_unit = mt_cursor_uleb(&c);
  e->data_unit = mt_cursor_sleb(&c);
  e->return_register = version == 1 ? mt_cursor_u8(&c) : (uint8_t)mt_cursor_uleb(&c);
  *augmented = *letters == 'z';
  if (*letters && !*augmented) return false; /* nothing says how long its data are */
  if (*augmented) {
    struct mt_cursor data = mt_cursor_part(&c, mt_cursor_uleb(&c));
    read_augmentation(&data, letters + 1, e);
    if (data.torn) return false;
  }
  e->shared = c;
  return !c.torn;
}

bool mt_frame_entry_find(const struct mt_frame_table *table, uintptr_t pc, struct mt_frame_entry *e) {
  const uint8_t *at = find_sorted(table, pc);
  if (!at) return false;
  struct mt_cursor c = body_at(table, at);
  const uint8_t *link = c.at;
  uint32_t back = mt_cursor_u32(&c);
  bool augmented = false;
  *e = (struct mt_frame_entry){0};
  if (c.torn || !back || back > (uintptr_t)(link - table->start) || !read_shared(table, link - back, e, &augmented))
    return false;
  e->start = mt_frame_pointer(&c, e->encoding);
  e->end = e->start + mt_frame_pointer(&c, e->encoding & PTR_WIDTH);
  if (augmented) mt_cursor_skip(&c, mt_cursor_uleb(&c));
  e->own = c;
  return !c.torn && pc >= e->start && pc < e->end;
}
