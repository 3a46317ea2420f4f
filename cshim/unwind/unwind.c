#include "unwind/unwind.h"

#include "base/thread.h"
#include "elf/loaded.h"
#include "unwind/rows.h"

void mt_unwind_start(void) { mt_loaded_refresh(); }

void mt_unwind_refresh(void) { mt_loaded_refresh_missed(); }

uint32_t mt_unwind_generation;

void mt_unwind_invalidate(void) {
  mt_loaded_refresh();
  mt_rows_invalidate();
  __atomic_add_fetch(&mt_unwind_generation, 1, __ATOMIC_RELEASE);
}

void mt_unwind_stop_at(uintptr_t start, uintptr_t end) {
  mt_rows_stop_at(start, end);
  __atomic_add_fetch(&mt_unwind_generation, 1, __ATOMIC_RELEASE);
}

bool mt_unwind_function(uintptr_t pc, uintptr_t *start, uintptr_t *end) {
  struct mt_frame_table table;
  struct mt_frame_entry entry;
  if (!mt_loaded_find(pc, &table) || !mt_frame_entry_find(&table, pc, &entry)) return false;
  *start = entry.start;
  *end = entry.end;
  return true;
}

bool mt_unwind_is_handler_return(uintptr_t pc) {
  struct mt_frame_table table;
  struct mt_frame_entry entry;
  return mt_loaded_find(pc, &table) && mt_frame_entry_find(&table, pc, &entry) && entry.signal;
}

#if defined(__x86_64__)

/* The walked stack belongs to the program: sanitizers would report the reads. */
#define READS_STACK __attribute__((no_sanitize("address", "thread")))

READS_STACK static uintptr_t word_at(uintptr_t address) { return *(const uintptr_t *)address; }

/* No frame is believed to be aligned to more. */
#define ALIGNMENT_MAX 4096u

/* Frames of code without unwind information that may lie between two others. */
#define UNKNOWN_FRAMES 16

/* The longest call instruction. */
#define CALL_BYTES 7

struct walk {
  uintptr_t pc, sp, bp;
  uintptr_t low, top;
};

/* What a step ends with if it does not end the stack. */
#define STEP_ON (-1)

static bool in_stack(const struct walk *w, uintptr_t address) {
  return address >= w->sp && address <= w->top - 8 && address % 8 == 0;
}

READS_STACK static bool value_of(const struct walk *w, const struct mt_value *v, uintptr_t cfa, uintptr_t *value) {
  uintptr_t base = v->base == MT_BASE_SP ? w->sp : v->base == MT_BASE_BP ? w->bp : cfa;
  *value = base + (uintptr_t)(intptr_t)v->inner;
  if (v->load) {
    if (!in_stack(w, *value)) return false;
    *value = word_at(*value) + (uintptr_t)(intptr_t)v->add;
  }
  return true;
}

/* A handler may run on a stack of its own: the interrupted code's is another one then. */
static int change_stack(struct walk *w, uintptr_t sp) {
  struct mt_stack_bounds bounds = {w->low, w->top};
  if ((sp <= w->sp || sp > w->top - 8) && !mt_stack_find(sp, &bounds)) return MT_STACK_BOUNDS;
  if (sp % 8 || sp > bounds.top - 8) return MT_STACK_BOUNDS;
  w->low = bounds.low, w->top = bounds.top, w->sp = sp;
  return STEP_ON;
}

static int step_row(struct walk *w, const struct mt_unwind_row *row) {
  uintptr_t cfa, bp, caller;
  if (!value_of(w, &row->cfa, 0, &cfa)) return MT_STACK_BOUNDS;
  if (!row->signal && (cfa < w->sp + 8 || cfa > w->top || cfa % 8)) return MT_STACK_BOUNDS;
  if (!value_of(w, &row->bp, cfa, &bp) || !value_of(w, &row->caller, cfa, &caller)) return MT_STACK_BOUNDS;
  w->bp = bp, w->pc = caller;
  if (row->signal) return change_stack(w, cfa);
  w->sp = cfa;
  return STEP_ON;
}

/* A function that realigns its stack copies its return address above its frame pointer, for debuggers. The original is
 * between there and the next aligned address; if a stale word in that range equals it, the two cannot be distinguished.
 */
READS_STACK static int step_realigned(struct walk *w) {
  if (!in_stack(w, w->bp) || !in_stack(w, w->bp + 8)) return MT_STACK_BOUNDS;
  uintptr_t caller = word_at(w->bp + 8), aligned = w->bp + 16, alignment = aligned & -aligned, found = 0;
  if (alignment > ALIGNMENT_MAX) alignment = ALIGNMENT_MAX;
  for (uintptr_t at = aligned + 8; at <= aligned + alignment && in_stack(w, at); at += 8) {
    if (word_at(at) != caller) continue;
    if (found) return MT_STACK_UNSUPPORTED;
    found = at;
  }
  if (!found) return MT_STACK_UNSUPPORTED;
  w->bp = word_at(w->bp);
  w->sp = found + 8;
  w->pc = caller;
  return STEP_ON;
}

/* Whether the address follows a call instruction, in a function with unwind information. */
static bool follows_call(const struct mt_frame_table *table, uintptr_t pc) {
  struct mt_frame_entry entry;
  const uint8_t *at = mt_loaded_code(pc, CALL_BYTES);
  if (!at || !mt_frame_entry_find(table, pc - 1, &entry) || pc - entry.start < CALL_BYTES) return false;
  if (at[-5] == 0xe8) return true;
  for (int length = 2; length <= CALL_BYTES; length++)
    if (at[-length] == 0xff && (at[1 - length] & 0x38) == 0x10) return true;
  return false;
}

/* JIT-compiled code and Go's has no unwind information, but most of it keeps the frame pointer. Whether this code does
 * is tested: the chain of frame pointers must lead up this stack, over a bounded number of such frames, to a return
 * address after a call instruction in a function that has unwind information. */
READS_STACK static int step_unknown(struct walk *w) {
  uintptr_t bp = w->bp, below = w->sp;
  for (int i = 0; i < UNKNOWN_FRAMES && bp >= below && in_stack(w, bp) && in_stack(w, bp + 8); i++) {
    uintptr_t caller = word_at(bp + 8);
    struct mt_frame_table table;
    if (caller - 1 >= MT_CODE_END - 1 || (caller >= w->low && caller < w->top)) return MT_STACK_NO_ROW;
    if (mt_loaded_find(caller - 1, &table)) {
      if (!follows_call(&table, caller)) return MT_STACK_NO_ROW;
      w->pc = word_at(w->bp + 8);
      w->sp = w->bp + 16;
      w->bp = word_at(w->bp);
      return STEP_ON;
    }
    below = bp + 16;
    bp = word_at(bp);
  }
  return MT_STACK_NO_ROW;
}

/* The slow path of mt_unwind's loop. */
static __attribute__((noinline)) int step_indexed(struct walk *w, uint32_t word) {
  const struct mt_unwind_row *row = mt_rows_indexed(word);
  switch (MT_ROW_INDEXED_KIND(word)) {
    case MT_ROW_STEP: return step_row(w, row);
    case MT_ROW_REALIGNED: return step_realigned(w);
    case MT_ROW_OUTERMOST: return MT_STACK_WHOLE;
    case MT_ROW_NONE: return step_unknown(w);
    default: return MT_STACK_UNSUPPORTED;
  }
}

/* The frame of a row that a word has room for, but of an interrupted instruction, whose row is not cached. */
READS_STACK static int step_compact(struct walk *w, uint32_t word) {
  uintptr_t cfa = ((word & MT_ROW_WORD) == MT_ROW_FROM_SP ? w->sp : w->bp) + (word & MT_ROW_CFA),
            slot = cfa - MT_ROW_BP(word);
  if (cfa < w->sp + 8 || cfa > w->top || cfa % 8 || slot < w->sp) return MT_STACK_BOUNDS;
  if (MT_ROW_BP(word)) w->bp = word_at(slot);
  w->pc = word_at(cfa - 8);
  w->sp = cfa;
  return STEP_ON;
}

/* True if the odd row that led to the present frame was a signal handler's. */
static bool interrupted(uint32_t word) {
  return (word & MT_ROW_WORD) == MT_ROW_INDEXED && MT_ROW_INDEXED_KIND(word) == MT_ROW_STEP &&
         mt_rows_indexed(word)->signal;
}

/* One step by an odd row, and one more from each interrupted instruction that it leads to. */
static __attribute__((noinline)) int step_slowly(struct walk *w, uint32_t word, uint64_t **next, const uint64_t *last,
                                                 bool whole) {
  for (;;) {
    int end = (word & MT_ROW_WORD) == MT_ROW_INDEXED ? step_indexed(w, word) : step_compact(w, word);
    if (end != STEP_ON || !interrupted(word)) return end;
    if (w->pc - 1 >= MT_CODE_END - 1) return STEP_ON;
    if (*next == last) return MT_STACK_DEPTH;
    *(*next)++ = w->pc;
    word = mt_rows_exact(w->pc);
    if (word & MT_ROW_STOP && !whole) return MT_STACK_INTERPRETER;
  }
}

/* The loop handles the two compact kinds of rows, which are all but one in a hundred. Of a row from sp only the upper
 * end needs a check: its CFA is above sp, and its slots are in between. */
READS_STACK
unsigned mt_unwind(const struct mt_frame *frame, const struct mt_stack_bounds *bounds, uint64_t *out, unsigned depth,
                   bool whole, enum mt_stack_end *end) {
  const uint32_t stop = whole ? 0 : MT_ROW_STOP;
  uintptr_t pc = frame->caller, sp = (uintptr_t)(frame + 1), bp = frame->bp, low = bounds->low, top = bounds->top;
  uint64_t *next = out, *const last = out + depth;
  *next++ = pc;
  *end = MT_STACK_BOUNDS;
  if (sp < low || sp > top || sp % 8) return 1;
  for (;;) {
    uintptr_t cfa;
    if (MT_UNLIKELY(pc - 1 >= MT_CODE_END - 1)) {
      *end = MT_STACK_NO_ROW;
      break;
    }
    uint32_t row = mt_rows_get(pc);
    if (row & stop) {
      *end = MT_STACK_INTERPRETER;
      break;
    }
    if (MT_LIKELY((row & MT_ROW_WORD) == MT_ROW_FROM_SP)) {
      cfa = sp + (row & MT_ROW_CFA);
      if (MT_UNLIKELY(cfa > top)) break;
    } else if (MT_LIKELY((row & MT_ROW_WORD) == MT_ROW_FROM_BP)) {
      cfa = bp + (row & MT_ROW_CFA);
      if (bp > top || cfa > top || cfa < sp + 8 || cfa % 8 || cfa - MT_ROW_BP(row) < sp) break;
    } else {
      struct walk w = {pc, sp, bp, low, top};
      int ended = step_slowly(&w, row, &next, last, whole);
      if (ended != STEP_ON) {
        *end = (enum mt_stack_end)ended;
        break;
      }
      pc = w.pc, sp = w.sp, bp = w.bp, low = w.low, top = w.top;
      goto stepped;
    }
    if (MT_ROW_BP(row)) bp = word_at(cfa - MT_ROW_BP(row));
    pc = word_at(cfa - 8);
    sp = cfa;
  stepped:
    if (MT_UNLIKELY(!pc)) {
      *end = MT_STACK_WHOLE;
      break;
    }
    if (MT_UNLIKELY(next == last)) {
      *end = MT_STACK_DEPTH;
      break;
    }
    *next++ = pc;
  }
  return (unsigned)(next - out);
}

#endif
