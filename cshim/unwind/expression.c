#include "unwind/expression.h"

#include <stddef.h>

/* DWARF register numbers, as in unwindrow.c. */
#if defined(__x86_64__)
enum { BREG_BP = 6, BREG_SP = 7, BREG_PC = 16 };
#else
enum { BREG_BP = 29, BREG_SP = 31, BREG_PC = 32 };
#endif

/* DWARF expressions: DWARF 5, 2.5.1 and 7.7.1. */
enum {
  DW_OP_deref = 0x06,
  DW_OP_const1u = 0x08,
  DW_OP_const1s = 0x09,
  DW_OP_const2u = 0x0a,
  DW_OP_const2s = 0x0b,
  DW_OP_const4u = 0x0c,
  DW_OP_const4s = 0x0d,
  DW_OP_const8u = 0x0e,
  DW_OP_const8s = 0x0f,
  DW_OP_constu = 0x10,
  DW_OP_consts = 0x11,
  DW_OP_dup = 0x12,
  DW_OP_drop = 0x13,
  DW_OP_swap = 0x16,
  DW_OP_and = 0x1a,
  DW_OP_minus = 0x1c,
  DW_OP_or = 0x21,
  DW_OP_plus = 0x22,
  DW_OP_plus_uconst = 0x23,
  DW_OP_shl = 0x24,
  DW_OP_shr = 0x25,
  DW_OP_eq = 0x29,
  DW_OP_ge = 0x2a,
  DW_OP_gt = 0x2b,
  DW_OP_le = 0x2c,
  DW_OP_lt = 0x2d,
  DW_OP_ne = 0x2e,
  DW_OP_lit0 = 0x30,
  DW_OP_lit31 = 0x4f,
  DW_OP_breg0 = 0x70,
  DW_OP_breg31 = 0x8f,
  DW_OP_nop = 0x96,
};

#define STACK_MAX 8

/* A symbolic stack entry; base NONE is a constant. */
struct term {
  uint8_t base;
  bool load;
  int64_t inner, add;
};

struct stack {
  struct term term[STACK_MAX];
  unsigned depth;
  bool failed;
};

static void push(struct stack *s, struct term t) {
  if (s->depth == STACK_MAX)
    s->failed = true;
  else
    s->term[s->depth++] = t;
}

static void push_constant(struct stack *s, int64_t value) { push(s, (struct term){.add = value}); }

static struct term pop(struct stack *s) {
  if (s->depth) return s->term[--s->depth];
  s->failed = true;
  return (struct term){0};
}

/* Sums wrap. */
static struct term plus(struct term t, uint64_t more) {
  int64_t *into = t.base && !t.load ? &t.inner : &t.add;
  *into = (int64_t)((uint64_t)*into + more);
  return t;
}

static void dereference(struct stack *s) {
  struct term t = pop(s);
  if (!t.base || t.load) s->failed = true;
  t.load = true;
  push(s, t);
}

static int64_t fold(struct stack *s, uint8_t op, int64_t a, int64_t b) {
  switch (op) {
    case DW_OP_and: return a & b;
    case DW_OP_or: return a | b;
    case DW_OP_shl: return (uint64_t)b < 64 ? (int64_t)((uint64_t)a << b) : 0;
    case DW_OP_shr: return (uint64_t)b < 64 ? (int64_t)((uint64_t)a >> b) : 0;
    case DW_OP_eq: return a == b;
    case DW_OP_ne: return a != b;
    case DW_OP_ge: return a >= b;
    case DW_OP_gt: return a > b;
    case DW_OP_le: return a <= b;
    case DW_OP_lt: return a < b;
    default: s->failed = true; return 0;
  }
}

static void apply_binary(struct stack *s, uint8_t op) {
  struct term b = pop(s), a = pop(s);
  if (op == DW_OP_plus && !b.base)
    push(s, plus(a, (uint64_t)b.add));
  else if (op == DW_OP_plus && !a.base)
    push(s, plus(b, (uint64_t)a.add));
  else if (op == DW_OP_minus && !b.base)
    push(s, plus(a, -(uint64_t)b.add));
  else if (!a.base && !b.base)
    push_constant(s, fold(s, op, a.add, b.add));
  else
    s->failed = true;
}

static void push_register(struct stack *s, unsigned number, int64_t offset, uintptr_t pc) {
  switch (number) {
    case BREG_SP: push(s, (struct term){.base = MT_BASE_SP, .inner = offset}); break;
    case BREG_BP: push(s, (struct term){.base = MT_BASE_BP, .inner = offset}); break;
    case BREG_PC: push_constant(s, (int64_t)(pc + (uint64_t)offset)); break;
    default: s->failed = true;
  }
}

static void run_one(struct stack *s, struct mt_cursor *c, uintptr_t pc) {
  uint8_t op = mt_cursor_u8(c);
  struct term t;
  switch (op) {
    case DW_OP_nop: break;
    case DW_OP_const1u: push_constant(s, mt_cursor_u8(c)); break;
    case DW_OP_const1s: push_constant(s, (int8_t)mt_cursor_u8(c)); break;
    case DW_OP_const2u: push_constant(s, mt_cursor_u16(c)); break;
    case DW_OP_const2s: push_constant(s, (int16_t)mt_cursor_u16(c)); break;
    case DW_OP_const4u: push_constant(s, mt_cursor_u32(c)); break;
    case DW_OP_const4s: push_constant(s, (int32_t)mt_cursor_u32(c)); break;
    case DW_OP_const8u: case DW_OP_const8s: push_constant(s, (int64_t)mt_cursor_u64(c)); break;
    case DW_OP_constu: push_constant(s, (int64_t)mt_cursor_uleb(c)); break;
    case DW_OP_consts: push_constant(s, mt_cursor_sleb(c)); break;
    case DW_OP_plus_uconst: t = pop(s), push(s, plus(t, mt_cursor_uleb(c))); break;
    case DW_OP_dup: t = pop(s), push(s, t), push(s, t); break;
    case DW_OP_drop: pop(s); break;
    case DW_OP_swap: {
      struct term b = pop(s), a = pop(s);
      push(s, b), push(s, a);
      break;
    }
    case DW_OP_deref: dereference(s); break;
    default:
      if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
        push_constant(s, op - DW_OP_lit0);
      else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
        push_register(s, op - DW_OP_breg0, mt_cursor_sleb(c), pc);
      else
        apply_binary(s, op);
  }
}

bool mt_dwarf_expression(const uint8_t *at, uint32_t bytes, uintptr_t pc, struct mt_value first,
                         struct mt_value *value) {
  struct mt_cursor c = {at, at + bytes, false};
  struct stack s = {.depth = 0};
  if (first.base) push(&s, (struct term){first.base, first.load, first.inner, first.add});
  while (c.at < c.end && !c.torn && !s.failed) run_one(&s, &c, pc);
  struct term t = pop(&s);
  *value = (struct mt_value){.base = t.base, .load = t.load, .inner = (int32_t)t.inner, .add = (int32_t)t.add};
  return !c.torn && !s.failed && value->inner == t.inner && (value->add == t.add || !t.base);
}
