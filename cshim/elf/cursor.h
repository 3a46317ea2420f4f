/* Reads numbers from a range of bytes that may be damaged: past its end everything is 0 and torn is set, and the cursor
 * stays where it is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct mt_cursor {
  const uint8_t *at, *end;
  bool torn;
};

static inline uint64_t mt_cursor_bytes(struct mt_cursor *c, unsigned count) {
  uint64_t value = 0;
  if ((uintptr_t)(c->end - c->at) < count) {
    c->torn = true;
    return 0;
  }
  memcpy(&value, c->at, count); /* little-endian, as are all hosts that CUDA runs on */
  c->at += count;
  return value;
}

static inline uint8_t mt_cursor_u8(struct mt_cursor *c) { return (uint8_t)mt_cursor_bytes(c, 1); }
static inline uint16_t mt_cursor_u16(struct mt_cursor *c) { return (uint16_t)mt_cursor_bytes(c, 2); }
static inline uint32_t mt_cursor_u32(struct mt_cursor *c) { return (uint32_t)mt_cursor_bytes(c, 4); }
static inline uint64_t mt_cursor_u64(struct mt_cursor *c) { return mt_cursor_bytes(c, 8); }

/* LEB128 (DWARF 5, 7.6); what does not fit in 64 bits is dropped. */
static inline uint64_t mt_cursor_uleb(struct mt_cursor *c) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte = mt_cursor_u8(c);
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
}

static inline int64_t mt_cursor_sleb(struct mt_cursor *c) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte = mt_cursor_u8(c);
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte & 0x80) continue;
    if (byte & 0x40 && shift + 7 < 64) value |= ~0ull << (shift + 7);
    return (int64_t)value;
  }
}

static inline void mt_cursor_skip(struct mt_cursor *c, uint64_t count) {
  if ((uint64_t)(c->end - c->at) < count)
    c->torn = true;
  else
    c->at += count;
}

/* The next count bytes as a cursor of their own; an empty one if there are fewer. */
static inline struct mt_cursor mt_cursor_part(struct mt_cursor *c, uint64_t count) {
  struct mt_cursor part = {c->at, c->at, false};
  mt_cursor_skip(c, count);
  if (!c->torn) part.end = c->at;
  return part;
}
