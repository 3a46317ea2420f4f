#include "elf/frametable.h"

#include <stddef.h>

/* Encodings of pointers: the lower half is the format, the upper one what the value is relative to (LSB Core 5.0,
 * "DWARF Exception Header Encoding"). */
enum {
  DW_EH_PE_absptr = 0x00,
  DW_EH_PE_uleb128 = 0x01,
  DW_EH_PE_udata2 = 0x02,
  DW_EH_PE_udata4 = 0x03,
  DW_EH_PE_udata8 = 0x04,
  DW_EH_PE_sleb128 = 0x09,
  DW_EH_PE_sdata2 = 0x0a,
  DW_EH_PE_sdata4 = 0x0b,
  DW_EH_PE_sdata8 = 0x0c
};
enum {
  DW_EH_PE_pcrel = 0x10,
  DW_EH_PE_datarel = 0x30,
  DW_EH_PE_aligned = 0x50,
  DW_EH_PE_indirect = 0x80,
  DW_EH_PE_omit = 0xff
};
enum { FORMAT_MASK = 0x0f, APPLICATION_MASK = 0x70 };

#define EH_FRAME_HDR_VERSION 1
#define TABLE_ENCODING \
  (DW_EH_PE_datarel | DW_EH_PE_sdata4) /* what every linker writes: pairs of function and entry, sorted by function */
#define EXTENDED_LENGTH 0xffffffffu

uintptr_t mt_eh_pointer_read(struct mt_cursor *c, uint8_t encoding) {
  uint64_t value;
  if ((encoding & APPLICATION_MASK) == DW_EH_PE_aligned) {
    mt_cursor_skip(c, -(uintptr_t)c->at & (sizeof(uintptr_t) - 1));
    return mt_cursor_u64(c);
  }
  uintptr_t here = (uintptr_t)c->at;
  switch (encoding & FORMAT_MASK) {
    case DW_EH_PE_absptr: case DW_EH_PE_udata8: case DW_EH_PE_sdata8: value = mt_cursor_u64(c); break;
    case DW_EH_PE_uleb128: value = mt_cursor_uleb(c); break;
    case DW_EH_PE_udata2: value = mt_cursor_u16(c); break;
    case DW_EH_PE_udata4: value = mt_cursor_u32(c); break;
    case DW_EH_PE_sleb128: value = (uint64_t)mt_cursor_sleb(c); break;
    case DW_EH_PE_sdata2: value = (uint64_t)(int16_t)mt_cursor_u16(c); break;
    case DW_EH_PE_sdata4: value = (uint64_t)(int32_t)mt_cursor_u32(c); break;
    default: c->torn = true; return 0;
  }
  switch (encoding & (APPLICATION_MASK | DW_EH_PE_indirect)) {
    case DW_EH_PE_absptr: return value;
    case DW_EH_PE_pcrel: return value + here;
    default: c->torn = true; return 0;
  }
}

struct table_entry {
  int32_t function, entry; /* relative to the header */
};

/* The binary search table of .eh_frame_hdr; count is 0 if there is none. Before it come four bytes, the version and
 * three encodings, the address of .eh_frame and the number of entries (LSB Core 5.0, "The .eh_frame_hdr section"). */
static const uint8_t *search_table(const struct mt_frame_table *table, size_t *count) {
  struct mt_cursor c = {table->header, table->end, false};
  *count = 0;
  if (table->header < table->start || table->header >= table->end) return NULL;
  uint8_t version = mt_cursor_u8(&c), frame = mt_cursor_u8(&c), number = mt_cursor_u8(&c), entry = mt_cursor_u8(&c);
  if (c.torn || version != EH_FRAME_HDR_VERSION || entry != TABLE_ENCODING || number == DW_EH_PE_omit) return NULL;
  if (frame != DW_EH_PE_omit) mt_eh_pointer_read(&c, frame);
  uint64_t entries = mt_eh_pointer_read(&c, number);
  if (c.torn || entries > (uint64_t)(c.end - c.at) / sizeof(struct table_entry)) return NULL;
  *count = (size_t)entries;
  return c.at;
}

static struct table_entry table_entry_at(const uint8_t *sorted, size_t i) {
  struct table_entry e;
  memcpy(&e, sorted + i * sizeof e, sizeof e);
  return e;
}

/* The address of the last entry that begins at or before the address, NULL if there is none. */
static const uint8_t *search_fde(const struct mt_frame_table *table, uintptr_t pc) {
  size_t low = 0, high;
  const uint8_t *sorted = search_table(table, &high);
  int64_t wanted = (int64_t)(pc - (uintptr_t)table->header);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (table_entry_at(sorted, middle).function <= wanted)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low) return NULL;
  uintptr_t at = (uintptr_t)table->header + (uintptr_t)(intptr_t)table_entry_at(sorted, low - 1).entry;
  return at >= (uintptr_t)table->start && at < (uintptr_t)table->end ? (const uint8_t *)at : NULL;
}

/* What follows the length of a CIE or FDE. */
static struct mt_cursor body_at(const struct mt_frame_table *table, const uint8_t *at) {
  struct mt_cursor c = {at, table->end, false};
  uint32_t length = mt_cursor_u32(&c);
  struct mt_cursor body = mt_cursor_part(&c, length);
  body.torn = c.torn || !length || length == EXTENDED_LENGTH;
  return body;
}

/* The letters of an augmentation string name its data, in that order (LSB Core 5.0, "Augmentation String Format"). An
 * unknown one ends what can be read of the data; their length tells what follows them. */
static void read_augmentation(struct mt_cursor *data, const char *letters, struct mt_frame_entry *e) {
  for (; *letters; letters++) switch (*letters) {
      case 'R': e->encoding = mt_cursor_u8(data); break;
      case 'L': mt_cursor_u8(data); break;
      case 'P': {
        uint8_t encoding = mt_cursor_u8(data); /* a personality: skipped, and so read as if it were absolute */
        bool aligned = (encoding & APPLICATION_MASK) == DW_EH_PE_aligned;
        mt_eh_pointer_read(data, aligned ? DW_EH_PE_aligned : encoding & FORMAT_MASK);
        break;
      }
      case 'S': e->signal = true; break;
      case 'B': case 'G': break; /* aarch64: key of signed return addresses, tagged stack */
      default: return;
    }
}

static bool read_cie(const struct mt_frame_table *table, const uint8_t *at, struct mt_frame_entry *e, bool *augmented) {
  struct mt_cursor c = body_at(table, at);
  if (mt_cursor_u32(&c)) return false; /* not a CIE */
  uint8_t version = mt_cursor_u8(&c);
  const char *letters = (const char *)c.at;
  while (!c.torn && mt_cursor_u8(&c)) continue;
  if (c.torn || (version != 1 && version != 3 && version != 4)) return false;
  if (letters[0] == 'e' && letters[1] == 'h') mt_cursor_u64(&c), letters += 2; /* "eh": GCC 2 */
  if (version == 4 && (mt_cursor_u8(&c) != sizeof(void *) || mt_cursor_u8(&c))) return false;
  e->code_alignment = mt_cursor_uleb(&c);
  e->data_alignment = mt_cursor_sleb(&c);
  e->return_address_register = version == 1 ? mt_cursor_u8(&c) : (uint8_t)mt_cursor_uleb(&c);
  *augmented = *letters == 'z';
  if (*letters && !*augmented) return false; /* the length of its data is unknown */
  if (*augmented) {
    struct mt_cursor data = mt_cursor_part(&c, mt_cursor_uleb(&c));
    read_augmentation(&data, letters + 1, e);
    if (data.torn) return false;
  }
  e->cie_program = c;
  return !c.torn;
}

bool mt_frame_entry_find(const struct mt_frame_table *table, uintptr_t pc, struct mt_frame_entry *e) {
  const uint8_t *at = search_fde(table, pc);
  if (!at) return false;
  struct mt_cursor c = body_at(table, at);
  const uint8_t *link = c.at;
  uint32_t back = mt_cursor_u32(&c);
  bool augmented = false;
  *e = (struct mt_frame_entry){0};
  if (c.torn || !back || back > (uintptr_t)(link - table->start) || !read_cie(table, link - back, e, &augmented))
    return false;
  e->start = mt_eh_pointer_read(&c, e->encoding);
  e->end = e->start + mt_eh_pointer_read(&c, e->encoding & FORMAT_MASK);
  if (augmented) mt_cursor_skip(&c, mt_cursor_uleb(&c));
  e->fde_program = c;
  return !c.torn && pc >= e->start && pc < e->end;
}
