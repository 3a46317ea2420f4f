#include "unwind/expression.h"

#include <stddef.h>

#if defined(__x86_64__)
enum { BREG_BP = 6, BREG_SP = 7, BREG_PC = 16 };
#else
enum { BREG_BP = 29, BREG_SP = 31, BREG_PC = 32 };
#endif

enum {
  OP_LOAD = 0x06,
  OP_U8 = 0x08,
  OP_S8 = 0x09,
  OP_U16 = 0x0a,
  OP_S16 = 0x0b,
  OP_U32 = 0x0c,
  OP_S32 = 0x0d,
  OP_U64 = 0x0e,
  OP_S64 = 0x0f,
  OP_ULEB = 0x10,
  OP_SLEB = 0x11,
  OP_DUPLICATE = 0x12,
  OP_DROP = 0x13,
  OP_SWAP = 0x16,
  OP_AND = 0x1a,
  OP_MINUS = 0x1c,
  OP_OR = 0x21,
  OP_PLUS = 0x22,
  OP_PLUS_CONSTANT = 0x23,
  OP_SHIFT_LEFT = 0x24,
  OP_SHIFT_RIGHT = 0x25,
  OP_EQUAL = 0x29,
  OP_GREATER_EQUAL = 0x2a,
  OP_GREATER = 0x2b,
  OP_LESS_EQUAL = 0x2c,
  OP_LESS = 0x2d,
  OP_NOT_EQUAL = 0x2e,
  OP_LITERAL = 0x30,
  OP_LITERAL_LAST = 0x4f,
  OP_REGISTER = 0x70,
  OP_REGISTER_LAST = 0x8f,
  OP_NOP = 0x96,
};

#define STACK_MAX 8

/* Base NONE is a constant here. */
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

/* Sums wrap, as a processor's do. */
static struct term plus(struct term t, uint64_t more) {
  int64_t *into = t.base && !t.load ? &t.inner : &t.add;
  *into = (int64_t)((uint64_t)*into + more);
  return t;
}

static void load(struct stack *s) {
  struct term t = pop(s);
  if (!t.base || t.load) s->failed = true;
  t.load = true;
  push(s, t);
}

static int64_t folded(struct stack *s, uint8_t op, int64_t a, int64_t b) {
  switch (op) {
    case OP_AND: return a & b;
    case OP_OR: return a | b;
    case OP_SHIFT_LEFT: return (uint64_t)b < 64 ? (int64_t)((uint64_t)a << b) : 0;
    case OP_SHIFT_RIGHT: return (uint64_t)b < 64 ? (int64_t)((uint64_t)a >> b) : 0;
    case OP_EQUAL: return a == b;
    case OP_NOT_EQUAL: return a != b;
    case OP_GREATER_EQUAL: return a >= b;
    case OP_GREATER: return a > b;
    case OP_LESS_EQUAL: return a <= b;
    case OP_LESS: return a < b;
    default: s->failed = true; return 0;
  }
}

static void combine(struct stack *s, uint8_t op) {
  struct term b = pop(s), a = pop(s);
  if (op == OP_PLUS && !b.base)
    push(s, plus(a, (uint64_t)b.add));
  else if (op == OP_PLUS && !a.base)
    push(s, plus(b, (uint64_t)a.add));
  else if (op == OP_MINUS && !b.base)
    push(s, plus(a, -(uint64_t)b.add));
  else if (!a.base && !b.base)
    push_constant(s, folded(s, op, a.add, b.add));
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
    case OP_NOP: break;
    case OP_U8: push_constant(s, mt_cursor_u8(c)); break;
    case OP_S8: push_constant(s, (int8_t)mt_cursor_u8(c)); break;
    case OP_U16: push_constant(s, mt_cursor_u16(c)); break;
    case OP_S16: push_constant(s, (int16_t)mt_cursor_u16(c)); break;
    case OP_U32: push_constant(s, mt_cursor_u32(c)); break;
    case OP_S32: push_constant(s, (int32_t)mt_cursor_u32(c)); break;
    case OP_U64: case OP_S64: push_constant(s, (int64_t)mt_cursor_u64(c)); break;
    case OP_ULEB: push_constant(s, (int64_t)mt_cursor_uleb(c)); break;
    case OP_SLEB: push_constant(s, mt_cursor_sleb(c)); break;
    case OP_PLUS_CONSTANT: t = pop(s), push(s, plus(t, mt_cursor_uleb(c))); break;
    case OP_DUPLICATE: t = pop(s), push(s, t), push(s, t); break;
    case OP_DROP: pop(s); break;
    case OP_SWAP: {
      struct term b = pop(s), a = pop(s);
      push(s, b), push(s, a);
      break;
    }
    case OP_LOAD: load(s); break;
    default:
      if (op >= OP_LITERAL && op <= OP_LITERAL_LAST)
        push_constant(s, op - OP_LITERAL);
      else if (op >= OP_REGISTER && op <= OP_REGISTER_LAST)
        push_register(s, op - OP_REGISTER, mt_cursor_sleb(c), pc);
      else
        combine(s, op);
  }
}

bool mt_expression(const uint8_t *at, uint32_t bytes, uintptr_t pc, struct mt_value first, struct mt_value *value) {
  struct mt_cursor c = {at, at + bytes, false};
  struct stack s = {.depth = 0};
  if (first.base) push(&s, (struct term){first.base, first.load, first.inner, first.add});
  while (c.at < c.end && !c.torn && !s.failed) run_one(&s, &c, pc);
  struct term t = pop(&s);
  *value = (struct mt_value){.base = t.base, .load = t.load, .inner = (int32_t)t.inner, .add = (int32_t)t.add};
  return !c.torn && !s.failed && value->inner == t.inner && (value->add == t.add || !t.base);
}
