#include "unwind/unwindrow.h"

#include <stddef.h>

#include "unwind/expression.h"

/* DWARF register numbers: System V ABI, x86-64 supplement, "DWARF Register Number Mapping"; DWARF for the Arm 64-bit
 * Architecture (AADWARF64), "DWARF register names". */
#if defined(__x86_64__)
enum { REGISTER_BP = 6, REGISTER_SP = 7, REGISTER_RA = 16 };
#else
enum { REGISTER_BP = 29, REGISTER_SP = 31, REGISTER_RA = 30 };
#endif

/* Compilers nest DW_CFA_remember_state once or twice, and write a few hundred instructions. */
#define SAVED_STATES 8
#define INSTRUCTIONS_MAX (1u << 17)

/* Call frame instructions: DWARF 5, 6.4.2 and 7.24; those of GNU: LSB Core 5.0, "DWARF CFI Extensions". */
enum {
  DW_CFA_nop = 0x00,
  DW_CFA_set_loc = 0x01,
  DW_CFA_advance_loc1 = 0x02,
  DW_CFA_advance_loc2 = 0x03,
  DW_CFA_advance_loc4 = 0x04,
  DW_CFA_offset_extended = 0x05,
  DW_CFA_restore_extended = 0x06,
  DW_CFA_undefined = 0x07,
  DW_CFA_same_value = 0x08,
  DW_CFA_register = 0x09,
  DW_CFA_remember_state = 0x0a,
  DW_CFA_restore_state = 0x0b,
  DW_CFA_def_cfa = 0x0c,
  DW_CFA_def_cfa_register = 0x0d,
  DW_CFA_def_cfa_offset = 0x0e,
  DW_CFA_def_cfa_expression = 0x0f,
  DW_CFA_expression = 0x10,
  DW_CFA_offset_extended_sf = 0x11,
  DW_CFA_def_cfa_sf = 0x12,
  DW_CFA_def_cfa_offset_sf = 0x13,
  DW_CFA_val_offset = 0x14,
  DW_CFA_val_offset_sf = 0x15,
  DW_CFA_val_expression = 0x16,
  DW_CFA_GNU_args_size = 0x2e,
  DW_CFA_GNU_negative_offset_extended = 0x2f,
};
/* The lower six bits are the operand. */
enum { DW_CFA_advance_loc = 0x40, DW_CFA_offset = 0x80, DW_CFA_restore = 0xc0 };

/* Register rules: DWARF 5, 6.4.1. */
enum rule_kind {
  RULE_SAME_VALUE = 0,
  RULE_UNDEFINED,
  RULE_OFFSET,
  RULE_VAL_OFFSET,
  RULE_EXPRESSION,
  RULE_VAL_EXPRESSION,
  RULE_OTHER, /* register, architectural */
};

struct rule {
  uint8_t kind;
  uint32_t bytes; /* of the expression */
  union {
    int64_t offset; /* from the CFA */
    const uint8_t *expression;
  };
};

enum tracked { TRACK_BP, TRACK_SP, TRACK_RA, TRACKED };

struct state {
  struct rule rule[TRACKED];
  uint64_t cfa_register;
  int64_t cfa_offset;
  const uint8_t *cfa_expression; /* NULL: register and offset */
  uint32_t cfa_bytes;
};

struct run {
  const struct mt_frame_entry *entry;
  uintptr_t pc, location;
  struct state now, initial; /* initial: after the CIE's instructions */
  struct state saved[SAVED_STATES];
  unsigned depth;
  unsigned left; /* instructions that may still run */
  bool failed;
};

static struct rule *rule_of(struct run *run, uint64_t number) {
  switch (number) {
    case REGISTER_BP: return &run->now.rule[TRACK_BP];
    case REGISTER_SP: return &run->now.rule[TRACK_SP];
    case REGISTER_RA: return &run->now.rule[TRACK_RA];
    default: return NULL;
  }
}

static void set_rule(struct run *run, uint64_t number, struct rule rule) {
  struct rule *of = rule_of(run, number);
  if (of) *of = rule;
}

static void restore_rule(struct run *run, uint64_t number) {
  struct rule *of = rule_of(run, number);
  if (of) *of = run->initial.rule[of - run->now.rule];
}

static int64_t scaled(const struct run *run, int64_t units) {
  return (int64_t)((uint64_t)units * (uint64_t)run->entry->data_alignment);
}

static struct rule offset_rule(uint8_t kind, const struct run *run, int64_t units) {
  return (struct rule){.kind = kind, .offset = scaled(run, units)};
}

static struct rule expression_rule(struct mt_cursor *c, uint8_t kind) {
  struct mt_cursor part = mt_cursor_part(c, mt_cursor_uleb(c));
  return (struct rule){.kind = kind, .bytes = (uint32_t)(part.end - part.at), .expression = part.at};
}

static void define_cfa(struct run *run, uint64_t number, int64_t offset) {
  run->now.cfa_register = number;
  run->now.cfa_offset = offset;
  run->now.cfa_expression = NULL;
}

static void remember_state(struct run *run) {
  if (run->depth < SAVED_STATES)
    run->saved[run->depth++] = run->now;
  else
    run->failed = true;
}

static void restore_state(struct run *run) {
  if (run->depth)
    run->now = run->saved[--run->depth];
  else
    run->failed = true;
}

static void run_cfa(struct run *run, struct mt_cursor *c, uint8_t op) {
  uint64_t number;
  switch (op) {
    case DW_CFA_def_cfa:
      number = mt_cursor_uleb(c);
      define_cfa(run, number, (int64_t)mt_cursor_uleb(c));
      break;
    case DW_CFA_def_cfa_sf:
      number = mt_cursor_uleb(c);
      define_cfa(run, number, scaled(run, mt_cursor_sleb(c)));
      break;
    case DW_CFA_def_cfa_register:
      run->now.cfa_register = mt_cursor_uleb(c);
      run->now.cfa_expression = NULL;
      break;
    case DW_CFA_def_cfa_offset: run->now.cfa_offset = (int64_t)mt_cursor_uleb(c); break;
    case DW_CFA_def_cfa_offset_sf: run->now.cfa_offset = scaled(run, mt_cursor_sleb(c)); break;
    default: {
      struct rule rule = expression_rule(c, RULE_VAL_EXPRESSION);
      run->now.cfa_expression = rule.expression;
      run->now.cfa_bytes = rule.bytes;
    }
  }
}

static void run_rule(struct run *run, struct mt_cursor *c, uint8_t op) {
  uint64_t number = mt_cursor_uleb(c);
  struct rule rule = {.kind = RULE_OTHER};
  switch (op) {
    case DW_CFA_offset_extended: rule = offset_rule(RULE_OFFSET, run, (int64_t)mt_cursor_uleb(c)); break;
    case DW_CFA_offset_extended_sf: rule = offset_rule(RULE_OFFSET, run, mt_cursor_sleb(c)); break;
    case DW_CFA_GNU_negative_offset_extended: rule = offset_rule(RULE_OFFSET, run, -(int64_t)mt_cursor_uleb(c)); break;
    case DW_CFA_val_offset: rule = offset_rule(RULE_VAL_OFFSET, run, (int64_t)mt_cursor_uleb(c)); break;
    case DW_CFA_val_offset_sf: rule = offset_rule(RULE_VAL_OFFSET, run, mt_cursor_sleb(c)); break;
    case DW_CFA_expression: rule = expression_rule(c, RULE_EXPRESSION); break;
    case DW_CFA_val_expression: rule = expression_rule(c, RULE_VAL_EXPRESSION); break;
    case DW_CFA_undefined: rule.kind = RULE_UNDEFINED; break;
    case DW_CFA_same_value: rule.kind = RULE_SAME_VALUE; break;
    case DW_CFA_register: mt_cursor_uleb(c); break;
    case DW_CFA_restore_extended: restore_rule(run, number); return;
    default: run->failed = true; return;
  }
  set_rule(run, number, rule);
}

/* False once the location has passed pc: the row that applies is complete. */
static bool advance(struct run *run, uint64_t units) {
  run->location += units * run->entry->code_alignment;
  return run->location <= run->pc;
}

/* Runs one instruction. False when the row is complete. */
static bool run_one(struct run *run, struct mt_cursor *c) {
  uint8_t op = mt_cursor_u8(c), operand = op & 0x3f;
  switch (op & 0xc0) {
    case DW_CFA_advance_loc: return advance(run, operand);
    case DW_CFA_offset:
      set_rule(run, operand, offset_rule(RULE_OFFSET, run, (int64_t)mt_cursor_uleb(c)));
      return true;
    case DW_CFA_restore: restore_rule(run, operand); return true;
  }
  switch (op) {
    case DW_CFA_nop: return true;
    case DW_CFA_set_loc:
      run->location = mt_eh_pointer_read(c, run->entry->encoding);
      return run->location <= run->pc;
    case DW_CFA_advance_loc1: return advance(run, mt_cursor_u8(c));
    case DW_CFA_advance_loc2: return advance(run, mt_cursor_u16(c));
    case DW_CFA_advance_loc4: return advance(run, mt_cursor_u32(c));
    case DW_CFA_remember_state: remember_state(run); return true;
    case DW_CFA_restore_state: restore_state(run); return true;
    case DW_CFA_GNU_args_size: mt_cursor_uleb(c); return true;
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_expression:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_def_cfa_offset_sf: run_cfa(run, c, op); return true;
    default: run_rule(run, c, op); return true;
  }
}

static void run_program(struct run *run, struct mt_cursor c) {
  while (c.at < c.end && !c.torn && !run->failed && run_one(run, &c))
    if (!run->left--) run->failed = true;
  if (c.torn) run->failed = true;
}

static bool narrow(int64_t value, int32_t *into) {
  *into = (int32_t)value;
  return *into == value;
}

static bool cfa_value(const struct run *run, struct mt_value *v) {
  const struct state *s = &run->now;
  if (s->cfa_expression)
    return mt_dwarf_expression(s->cfa_expression, s->cfa_bytes, run->pc, (struct mt_value){0}, v) &&
           v->base != MT_BASE_NONE;
  *v = (struct mt_value){.base = s->cfa_register == REGISTER_SP   ? MT_BASE_SP
                                 : s->cfa_register == REGISTER_BP ? MT_BASE_BP
                                                                  : MT_BASE_NONE};
  return v->base && narrow(s->cfa_offset, &v->inner);
}

/* Turns an address into the word at it. */
static bool load(struct mt_value *v) {
  if (v->load || v->base == MT_BASE_NONE) return false;
  v->load = true;
  return true;
}

static bool rule_value(const struct run *run, const struct rule *rule, enum mt_base same, struct mt_value *v) {
  *v = (struct mt_value){.base = MT_BASE_CFA};
  switch (rule->kind) {
    case RULE_SAME_VALUE: case RULE_UNDEFINED: v->base = (uint8_t)same; return same != MT_BASE_NONE;
    case RULE_OFFSET: return narrow(rule->offset, &v->inner) && load(v);
    case RULE_VAL_OFFSET: return narrow(rule->offset, &v->inner);
    case RULE_EXPRESSION: return mt_dwarf_expression(rule->expression, rule->bytes, run->pc, *v, v) && load(v);
    case RULE_VAL_EXPRESSION:
      return mt_dwarf_expression(rule->expression, rule->bytes, run->pc, *v, v) && v->base != MT_BASE_NONE;
    default: return false;
  }
}

static bool equal(struct mt_value a, struct mt_value b) {
  return a.base == b.base && a.load == b.load && a.inner == b.inner && a.add == b.add;
}

/* The caller's stack pointer is the CFA by definition (DWARF 5, 6.4.1); a rule for it must agree. */
static bool stack_pointer_is_cfa(const struct run *run, struct mt_value cfa) {
  struct mt_value v;
  return rule_value(run, &run->now.rule[TRACK_SP], MT_BASE_CFA, &v) &&
         (equal(v, cfa) || equal(v, (struct mt_value){.base = MT_BASE_CFA}));
}

struct mt_unwind_row mt_unwind_row(const struct mt_frame_entry *entry, uintptr_t pc) {
  struct mt_unwind_row row = {.kind = MT_ROW_UNSUPPORTED, .signal = entry->signal};
  struct run run = {.entry = entry, .pc = pc, .location = entry->start, .left = INSTRUCTIONS_MAX};
  if (entry->return_address_register != REGISTER_RA) return row;
  run_program(&run, entry->cie_program);
  run.initial = run.now;
  run_program(&run, entry->fde_program);
  if (run.failed) return row;
  if (run.now.rule[TRACK_RA].kind == RULE_UNDEFINED) {
    row.kind = MT_ROW_OUTERMOST;
    return row;
  }
  bool bp = rule_value(&run, &run.now.rule[TRACK_BP], MT_BASE_BP, &row.bp);
  if (!cfa_value(&run, &row.cfa)) {
    if (bp && equal(row.bp, (struct mt_value){.base = MT_BASE_BP, .load = true}) && !run.now.cfa_expression)
      row.kind = MT_ROW_REALIGNED;
  } else if (bp && rule_value(&run, &run.now.rule[TRACK_RA], MT_BASE_NONE, &row.caller) &&
             stack_pointer_is_cfa(&run, row.cfa)) {
    row.kind = MT_ROW_STEP;
  }
  return row;
}
