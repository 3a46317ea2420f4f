#include "unwind/unwindrow.h"

#include <stddef.h>

#include "unwind/expression.h"

#if defined(__x86_64__)
enum { REGISTER_BP = 6, REGISTER_SP = 7, REGISTER_CALLER = 16 };
#else
enum { REGISTER_BP = 29, REGISTER_SP = 31, REGISTER_CALLER = 30 };
#endif

/* A compiler's own programs nest their saved states once or twice, and are a few hundred instructions long. */
#define SAVED_STATES 8
#define INSTRUCTIONS_MAX (1u << 17)

enum {
  OP_NOP = 0x00,
  OP_SET_LOCATION = 0x01,
  OP_ADVANCE1 = 0x02,
  OP_ADVANCE2 = 0x03,
  OP_ADVANCE4 = 0x04,
  OP_OFFSET = 0x05,
  OP_RESTORE = 0x06,
  OP_UNDEFINED = 0x07,
  OP_SAME = 0x08,
  OP_REGISTER = 0x09,
  OP_REMEMBER = 0x0a,
  OP_RECALL = 0x0b,
  OP_CFA = 0x0c,
  OP_CFA_REGISTER = 0x0d,
  OP_CFA_OFFSET = 0x0e,
  OP_CFA_EXPRESSION = 0x0f,
  OP_EXPRESSION = 0x10,
  OP_OFFSET_SIGNED = 0x11,
  OP_CFA_SIGNED = 0x12,
  OP_CFA_OFFSET_SIGNED = 0x13,
  OP_VALUE = 0x14,
  OP_VALUE_SIGNED = 0x15,
  OP_VALUE_EXPRESSION = 0x16,
  OP_ARGUMENTS_SIZE = 0x2e,
  OP_OFFSET_NEGATIVE = 0x2f,
};
enum { SHORT_ADVANCE = 1, SHORT_OFFSET = 2, SHORT_RESTORE = 3 }; /* the upper two bits; the lower six are the operand */

/* How a register of the caller is found. */
enum rule_kind {
  RULE_SAME = 0,
  RULE_UNDEFINED,
  RULE_OFFSET, /* saved there */
  RULE_VALUE,
  RULE_EXPRESSION, /* saved there */
  RULE_VALUE_EXPRESSION,
  RULE_OTHER,
};

struct rule {
  uint8_t kind;
  uint32_t bytes; /* of the expression */
  union {
    int64_t offset; /* from the CFA */
    const uint8_t *expression;
  };
};

enum tracked { TRACK_BP, TRACK_SP, TRACK_CALLER, TRACKED };

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
  struct state now, first; /* first: behind the shared program */
  struct state saved[SAVED_STATES];
  unsigned depth;
  unsigned left; /* instructions that may still run */
  bool failed;
};

static struct rule *rule_of(struct run *run, uint64_t number) {
  switch (number) {
    case REGISTER_BP: return &run->now.rule[TRACK_BP];
    case REGISTER_SP: return &run->now.rule[TRACK_SP];
    case REGISTER_CALLER: return &run->now.rule[TRACK_CALLER];
    default: return NULL;
  }
}

static void set_rule(struct run *run, uint64_t number, struct rule rule) {
  struct rule *of = rule_of(run, number);
  if (of) *of = rule;
}

static void restore_rule(struct run *run, uint64_t number) {
  struct rule *of = rule_of(run, number);
  if (of) *of = run->first.rule[of - run->now.rule];
}

static int64_t scaled(const struct run *run, int64_t units) {
  return (int64_t)((uint64_t)units * (uint64_t)run->entry->data_unit);
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

static void remember(struct run *run) {
  if (run->depth < SAVED_STATES)
    run->saved[run->depth++] = run->now;
  else
    run->failed = true;
}

static void recall(struct run *run) {
  if (run->depth)
    run->now = run->saved[--run->depth];
  else
    run->failed = true;
}

static void run_cfa(struct run *run, struct mt_cursor *c, uint8_t op) {
  uint64_t number;
  switch (op) {
    case OP_CFA: number = mt_cursor_uleb(c), define_cfa(run, number, (int64_t)mt_cursor_uleb(c)); break;
    case OP_CFA_SIGNED: number = mt_cursor_uleb(c), define_cfa(run, number, scaled(run, mt_cursor_sleb(c))); break;
    case OP_CFA_REGISTER: run->now.cfa_register = mt_cursor_uleb(c), run->now.cfa_expression = NULL; break;
    case OP_CFA_OFFSET: run->now.cfa_offset = (int64_t)mt_cursor_uleb(c); break;
    case OP_CFA_OFFSET_SIGNED: run->now.cfa_offset = scaled(run, mt_cursor_sleb(c)); break;
    default: {
      struct rule rule = expression_rule(c, RULE_VALUE_EXPRESSION);
      run->now.cfa_expression = rule.expression;
      run->now.cfa_bytes = rule.bytes;
    }
  }
}

static void run_rule(struct run *run, struct mt_cursor *c, uint8_t op) {
  uint64_t number = mt_cursor_uleb(c);
  struct rule rule = {.kind = RULE_OTHER};
  switch (op) {
    case OP_OFFSET: rule = (struct rule){.kind = RULE_OFFSET, .offset = scaled(run, (int64_t)mt_cursor_uleb(c))}; break;
    case OP_OFFSET_SIGNED: rule = (struct rule){.kind = RULE_OFFSET, .offset = scaled(run, mt_cursor_sleb(c))}; break;
    case OP_OFFSET_NEGATIVE:
      rule = (struct rule){.kind = RULE_OFFSET, .offset = scaled(run, -(int64_t)mt_cursor_uleb(c))};
      break;
    case OP_VALUE: rule = (struct rule){.kind = RULE_VALUE, .offset = scaled(run, (int64_t)mt_cursor_uleb(c))}; break;
    case OP_VALUE_SIGNED: rule = (struct rule){.kind = RULE_VALUE, .offset = scaled(run, mt_cursor_sleb(c))}; break;
    case OP_EXPRESSION: rule = expression_rule(c, RULE_EXPRESSION); break;
    case OP_VALUE_EXPRESSION: rule = expression_rule(c, RULE_VALUE_EXPRESSION); break;
    case OP_UNDEFINED: rule.kind = RULE_UNDEFINED; break;
    case OP_SAME: rule.kind = RULE_SAME; break;
    case OP_REGISTER: mt_cursor_uleb(c); break;
    case OP_RESTORE: restore_rule(run, number); return;
    default: run->failed = true; return;
  }
  set_rule(run, number, rule);
}

/* False once the location has passed the address: the rules hold up to there. */
static bool advance(struct run *run, uint64_t units) {
  run->location += units * run->entry->code_unit;
  return run->location <= run->pc;
}

/* False when the program is done. */
static bool run_one(struct run *run, struct mt_cursor *c) {
  uint8_t op = mt_cursor_u8(c), operand = op & 0x3f;
  switch (op >> 6) {
    case SHORT_ADVANCE: return advance(run, operand);
    case SHORT_OFFSET:
      set_rule(run, operand, (struct rule){.kind = RULE_OFFSET, .offset = scaled(run, (int64_t)mt_cursor_uleb(c))});
      return true;
    case SHORT_RESTORE: restore_rule(run, operand); return true;
  }
  switch (op) {
    case OP_NOP: return true;
    case OP_SET_LOCATION: run->location = mt_frame_pointer(c, run->entry->encoding); return run->location <= run->pc;
    case OP_ADVANCE1: return advance(run, mt_cursor_u8(c));
    case OP_ADVANCE2: return advance(run, mt_cursor_u16(c));
    case OP_ADVANCE4: return advance(run, mt_cursor_u32(c));
    case OP_REMEMBER: remember(run); return true;
    case OP_RECALL: recall(run); return true;
    case OP_ARGUMENTS_SIZE: mt_cursor_uleb(c); return true;
    case OP_CFA:
    case OP_CFA_REGISTER:
    case OP_CFA_OFFSET:
    case OP_CFA_EXPRESSION:
    case OP_CFA_SIGNED:
    case OP_CFA_OFFSET_SIGNED: run_cfa(run, c, op); return true;
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
    return mt_expression(s->cfa_expression, s->cfa_bytes, run->pc, (struct mt_value){0}, v) && v->base != MT_BASE_NONE;
  *v = (struct mt_value){.base = s->cfa_register == REGISTER_SP   ? MT_BASE_SP
                                 : s->cfa_register == REGISTER_BP ? MT_BASE_BP
                                                                  : MT_BASE_NONE};
  return v->base && narrow(s->cfa_offset, &v->inner);
}

/* An address becomes the word that lies there. */
static bool load(struct mt_value *v) {
  if (v->load || v->base == MT_BASE_NONE) return false;
  v->load = true;
  return true;
}

static bool rule_value(const struct run *run, const struct rule *rule, enum mt_base same, struct mt_value *v) {
  *v = (struct mt_value){.base = MT_BASE_CFA};
  switch (rule->kind) {
    case RULE_SAME: case RULE_UNDEFINED: v->base = (uint8_t)same; return same != MT_BASE_NONE;
    case RULE_OFFSET: return narrow(rule->offset, &v->inner) && load(v);
    case RULE_VALUE: return narrow(rule->offset, &v->inner);
    case RULE_EXPRESSION: return mt_expression(rule->expression, rule->bytes, run->pc, *v, v) && load(v);
    case RULE_VALUE_EXPRESSION:
      return mt_expression(rule->expression, rule->bytes, run->pc, *v, v) && v->base != MT_BASE_NONE;
    default: return false;
  }
}

static bool equal(struct mt_value a, struct mt_value b) {
  return a.base == b.base && a.load == b.load && a.inner == b.inner && a.add == b.add;
}

/* The caller's stack pointer is the CFA unless a rule says otherwise; then it must say the same. */
static bool stack_pointer_is_cfa(const struct run *run, struct mt_value cfa) {
  struct mt_value v;
  return rule_value(run, &run->now.rule[TRACK_SP], MT_BASE_CFA, &v) &&
         (equal(v, cfa) || equal(v, (struct mt_value){.base = MT_BASE_CFA}));
}

struct mt_unwind_row mt_unwind_row(const struct mt_frame_entry *entry, uintptr_t pc) {
  struct mt_unwind_row row = {.kind = MT_ROW_UNSUPPORTED, .signal = entry->signal};
  struct run run = {.entry = entry, .pc = pc, .location = entry->start, .left = INSTRUCTIONS_MAX};
  if (entry->return_register != REGISTER_CALLER) return row;
  run_program(&run, entry->shared);
  run.first = run.now;
  run_program(&run, entry->own);
  if (run.failed) return row;
  if (run.now.rule[TRACK_CALLER].kind == RULE_UNDEFINED) {
    row.kind = MT_ROW_OUTERMOST;
    return row;
  }
  bool bp = rule_value(&run, &run.now.rule[TRACK_BP], MT_BASE_BP, &row.bp);
  if (!cfa_value(&run, &row.cfa)) {
    if (bp && equal(row.bp, (struct mt_value){.base = MT_BASE_BP, .load = true}) && !run.now.cfa_expression)
      row.kind = MT_ROW_REALIGNED;
  } else if (bp && rule_value(&run, &run.now.rule[TRACK_CALLER], MT_BASE_NONE, &row.caller) &&
             stack_pointer_is_cfa(&run, row.cfa)) {
    row.kind = MT_ROW_STEP;
  }
  return row;
}
