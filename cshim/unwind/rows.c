#include "unwind/rows.h"

#include <string.h>

#include "elf/loaded.h"

#define ALL_ROWS 16384u
#define INDEXED_ROWS 1024u
#define STOPS 8u

_Alignas(64) uint64_t mt_rows[MT_ROWS];
static _Alignas(64) uint64_t all[ALL_ROWS];

/* Rows that do not fit in a word. Append only: a row does not depend on an address, so it cannot get stale. */
static struct {
  struct mt_unwind_row row;
  uint32_t ready;
} indexed[INDEXED_ROWS];
static uint32_t indexed_used;

static struct {
  uintptr_t start, end;
} stops[STOPS];
static uint32_t stops_used;

static uint32_t generation, replaced;

bool mt_rows_stops(uintptr_t pc) {
  uint32_t n = __atomic_load_n(&stops_used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < n; i++)
    if (pc >= __atomic_load_n(&stops[i].start, __ATOMIC_RELAXED) &&
        pc < __atomic_load_n(&stops[i].end, __ATOMIC_RELAXED))
      return true;
  return false;
}

static bool rows_equal(const struct mt_unwind_row *a, const struct mt_unwind_row *b) {
  return !memcmp(a, b, sizeof *a);
}

/* The word of an indexed row; two threads that add the same one at once may add it twice. Rows beyond the table's end,
 * which no known program reaches, are unsupported. */
static uint32_t index_row(const struct mt_unwind_row *row) {
  uint32_t used = __atomic_load_n(&indexed_used, __ATOMIC_ACQUIRE), i = 0;
  while (i < used && i < INDEXED_ROWS &&
         !(__atomic_load_n(&indexed[i].ready, __ATOMIC_ACQUIRE) && rows_equal(&indexed[i].row, row)))
    i++;
  if (i >= used || i >= INDEXED_ROWS) {
    if (used >= INDEXED_ROWS || (i = __atomic_fetch_add(&indexed_used, 1, __ATOMIC_ACQ_REL)) >= INDEXED_ROWS)
      return (uint32_t)MT_ROW_UNSUPPORTED << 16 | MT_ROW_INDEXED;
    indexed[i].row = *row;
    __atomic_store_n(&indexed[i].ready, 1, __ATOMIC_RELEASE);
  }
  return (uint32_t)row->kind << 16 | i << 3 | MT_ROW_INDEXED;
}

/* Nearly all rows fit in a word. The frame pointer's slot must be in the frame, so that its reader need not check. */
static uint32_t encode(const struct mt_unwind_row *row) {
  const struct mt_value *cfa = &row->cfa, *bp = &row->bp, *caller = &row->caller;
  bool usual = row->kind == MT_ROW_STEP && !row->signal && !cfa->load && cfa->base != MT_BASE_CFA && cfa->inner >= 8 &&
               cfa->inner <= (int32_t)MT_ROW_CFA && cfa->inner % 8 == 0 && caller->base == MT_BASE_CFA &&
               caller->load && caller->inner == -8 && !caller->add;
  bool kept = bp->base == MT_BASE_BP && !bp->load && !bp->inner && !bp->add;
  bool saved = bp->base == MT_BASE_CFA && bp->load && !bp->add && bp->inner <= -16 && bp->inner >= -0xff8 &&
               bp->inner % 8 == 0 && (cfa->base != MT_BASE_SP || -bp->inner <= cfa->inner);
  if (!usual || !(kept || saved))
    return row->kind == MT_ROW_STEP ? index_row(row) : (uint32_t)row->kind << 16 | MT_ROW_INDEXED;
  return (kept ? 0 : (uint32_t)(-bp->inner / 8) << 16) | (uint32_t)cfa->inner |
         (cfa->base == MT_BASE_SP ? MT_ROW_FROM_SP : MT_ROW_FROM_BP);
}

/* at: an address inside of the call instruction. The outermost frame of a fiber or thread is set up by hand, not by a
 * call: its return address is the start of a function. */
static uint32_t compute(uintptr_t at, bool *loaded) {
  struct mt_unwind_row row = {.kind = MT_ROW_NONE};
  struct mt_frame_table table;
  struct mt_frame_entry entry;
  *loaded = mt_loaded_find(at, &table);
  if (*loaded && mt_frame_entry_find(&table, at, &entry))
    row = mt_unwind_row(&entry, at);
  else if (*loaded && mt_frame_entry_find(&table, at + 1, &entry) && entry.start == at + 1)
    row = mt_unwind_row(&entry, at + 1);
  return encode(&row) | (mt_rows_stops(at) ? MT_ROW_STOP : 0);
}

/* 0 if the address is not in its line. */
static uint32_t probe(const uint64_t *table, uint32_t first, uintptr_t pc) {
  for (uint32_t i = 0; i < MT_ROWS_LINE; i++) {
    uint64_t word = __atomic_load_n(&table[first ^ i], __ATOMIC_ACQUIRE) ^ mt_rows_word(pc, 0);
    if (!(word >> MT_ROW_BITS)) return (uint32_t)word;
  }
  return 0;
}

/* Threads may fill the same slot at the same time: each writes a whole and true word. One that computed before a
 * library was unloaded, and stores after the slots were cleared, sees the generation changed and takes its word back. A
 * stale word that is read before that gives a wrong frame, and no more: whoever follows a row checks where it leads
 * before reading there. */
static void store(uint64_t *table, uint32_t first, uint64_t word, uint32_t seen) {
  uint32_t i = 0;
  while (i < MT_ROWS_LINE && __atomic_load_n(&table[first ^ i], __ATOMIC_RELAXED)) i++;
  if (i == MT_ROWS_LINE) i = __atomic_fetch_add(&replaced, 1, __ATOMIC_RELAXED) % MT_ROWS_LINE;
  uint64_t *slot = &table[first ^ i];
  __atomic_store_n(slot, word, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&generation, __ATOMIC_SEQ_CST) != seen)
    __atomic_compare_exchange_n(slot, &word, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

__attribute__((noinline)) uint32_t mt_rows_find(uintptr_t pc) {
  uint32_t hash = mt_rows_hash(pc), seen = __atomic_load_n(&generation, __ATOMIC_SEQ_CST);
  uint32_t row = probe(mt_rows, hash % MT_ROWS, pc);
  if (row) return row;
  row = probe(all, hash % ALL_ROWS, pc);
  if (!row) {
    bool loaded;
    row = compute(pc - 1, &loaded);
    if (!loaded) return row; /* code may be mapped there at any time */
    store(all, hash % ALL_ROWS, mt_rows_word(pc, row), seen);
  }
  store(mt_rows, hash % MT_ROWS, mt_rows_word(pc, row), seen);
  return row;
}

uint32_t mt_rows_exact(uintptr_t pc) {
  bool loaded;
  return compute(pc, &loaded);
}

const struct mt_unwind_row *mt_rows_indexed(uint32_t row) { return &indexed[MT_ROW_INDEX(row) % INDEXED_ROWS].row; }

static void clear(uint64_t *table, uint32_t slots) {
  for (uint32_t i = 0; i < slots; i++)
    if (__atomic_load_n(&table[i], __ATOMIC_RELAXED)) __atomic_store_n(&table[i], 0, __ATOMIC_SEQ_CST);
}

void mt_rows_invalidate(void) {
  __atomic_add_fetch(&generation, 1, __ATOMIC_SEQ_CST);
  clear(all, ALL_ROWS);
  clear(mt_rows, MT_ROWS);
}

void mt_rows_stop_at(uintptr_t start, uintptr_t end) {
  uint32_t n = __atomic_load_n(&stops_used, __ATOMIC_ACQUIRE);
  if (start == end) {
    __atomic_store_n(&stops_used, 0, __ATOMIC_RELEASE);
  } else if (n < STOPS && !(mt_rows_stops(start) && mt_rows_stops(end - 1))) {
    __atomic_store_n(&stops[n].start, start, __ATOMIC_RELAXED);
    __atomic_store_n(&stops[n].end, end, __ATOMIC_RELAXED);
    __atomic_store_n(&stops_used, n + 1, __ATOMIC_RELEASE);
  }
  mt_rows_invalidate();
}
