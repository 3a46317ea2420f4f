/* Functions of every shape that compilers make frames of, which call each other as a table says. */
#pragma once

#include <alloca.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct path {
  const uint8_t *step; /* which shape comes next */
  unsigned left;
  void (*end)(void); /* called by the innermost one */
};

static void shape_next(struct path *p);

#define KEPT __attribute__((noinline, noclone, noipa))
#define USED(object) \
  __asm__ volatile("" : : "r"(object) : "memory") /* also keeps a call above it from becoming a jump */

KEPT static void shape_small(struct path *p) {
  shape_next(p);
  USED(p);
}

KEPT static void shape_locals(struct path *p) {
  char room[328];
  memset(room, 1, sizeof room);
  USED(room);
  shape_next(p);
  USED(room);
}

KEPT static uint64_t shape_registers_of(struct path *p, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t e = a * 3, f = b * 5, g = c * 7, h = d * 11;
  USED(e + f);
  shape_next(p);
  return a + b + c + d + e + f + g + h;
}
KEPT static void shape_registers(struct path *p) { USED(shape_registers_of(p, (uintptr_t)p, 2, 3, 4)); }

KEPT static void shape_alloca(struct path *p) {
  char *room = alloca(16 + 8 * (p->left % 50));
  room[0] = 1;
  USED(room);
  shape_next(p);
  USED(room);
}

KEPT static void shape_vla(struct path *p) {
  uint64_t room[1 + p->left % 40];
  room[0] = 1;
  USED(room);
  shape_next(p);
  USED(room);
}

KEPT static void shape_aligned32(struct path *p) {
  _Alignas(32) char room[64];
  USED(room);
  shape_next(p);
  USED(room);
}

KEPT static void shape_aligned64(struct path *p) {
  _Alignas(64) char room[200];
  USED(room);
  shape_next(p);
  USED(room);
}

/* The CFA is kept in the frame: both the aligned local and the growing frame need it. */
KEPT static void shape_aligned_alloca(struct path *p) {
  _Alignas(64) char room[64];
  char *more = alloca(32 + p->left % 3 * 16);
  USED(room);
  USED(more);
  shape_next(p);
  USED(room);
  USED(more);
}

KEPT static uint64_t shape_stack_arguments_of(struct path *p, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                                              uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
  _Alignas(32) char room[32];
  USED(room);
  USED(g + h);
  shape_next(p);
  USED(room);
  return a + b + c + d + e + f + g + h;
}
KEPT static void shape_stack_arguments(struct path *p) {
  USED(shape_stack_arguments_of(p, 1, 2, 3, 4, 5, 6, 7, (uintptr_t)p));
}

#if defined(__x86_64__)
#define FORCED __attribute__((force_align_arg_pointer))
#define KEPT_REGISTERS "rbx", "r12", "r13", "r14", "r15"
#else
#define FORCED
#define KEPT_REGISTERS "x19", "x20", "x21", "x22", "x23"
#endif

KEPT FORCED static void shape_forced(struct path *p) {
  shape_next(p);
  USED(p);
}

KEPT __attribute__((optimize("O0"))) static void shape_o0(struct path *p) { shape_next(p); }

KEPT __attribute__((optimize("O3", "no-omit-frame-pointer"))) static void shape_frame_pointer(struct path *p) {
  shape_next(p);
  USED(p);
}

KEPT __attribute__((optimize("O3", "omit-frame-pointer"))) static void shape_o3(struct path *p) {
  for (unsigned i = 0, n = 1 + p->left / 1000; i < n; i++) shape_next(p);
  USED(p);
}

/* Too wide for a row's word. */
KEPT static void shape_huge(struct path *p) {
  char room[70000];
  room[0] = 1;
  USED(room);
  shape_next(p);
  USED(room);
}

/* The frame pointer serves as a register like any other, and is restored to something that is no address. */
KEPT static void shape_scratch_bp(struct path *p) {
  __asm__ volatile("" : : : KEPT_REGISTERS);
  shape_next(p);
  USED(p);
}

static __thread struct path *shape_path; /* for callbacks without an argument of their own */

KEPT static int shape_compare(const void *a, const void *b) {
  struct path *p = shape_path;
  shape_path = NULL;
  if (p) shape_next(p);
  return *(const int *)a - *(const int *)b;
}
KEPT static void shape_qsort(struct path *p) {
  int numbers[4] = {3, 1, 2, 0};
  shape_path = p;
  qsort(numbers, 4, sizeof *numbers, shape_compare);
  USED(numbers);
}
KEPT static void shape_bsearch(struct path *p) {
  int numbers[4] = {0, 1, 2, 3}, key = 2;
  shape_path = p;
  USED(bsearch(&key, numbers, 4, sizeof *numbers, shape_compare));
}

#if defined(__x86_64__)
/* A realigned frame whose CFA is in a register only, as compilers leave it where nothing else wants that register. */
void shape_realigned(struct path *p);
void shape_continue(struct path *p);
__attribute__((used)) void shape_continue(struct path *p) { shape_next(p); }
__asm__(
    ".pushsection .text\n .globl shape_realigned\n .type shape_realigned, @function\n"
    "shape_realigned:\n .cfi_startproc\n"
    " push %r13\n .cfi_def_cfa_offset 16\n .cfi_offset 13, -16\n"
    " lea 16(%rsp), %r13\n .cfi_def_cfa 13, 0\n"
    " and $-64, %rsp\n"
    " push -8(%r13)\n"
    " push %rbp\n .cfi_escape 0x10, 0x6, 0x2, 0x76, 0x0\n"
    " mov %rsp, %rbp\n"
    " call shape_continue\n"
    " pop %rbp\n .cfi_restore 6\n"
    " lea -16(%r13), %rsp\n .cfi_def_cfa 7, 16\n"
    " pop %r13\n .cfi_def_cfa_offset 8\n .cfi_restore 13\n"
    " ret\n .cfi_endproc\n .size shape_realigned, .-shape_realigned\n .popsection\n");
#endif

static void shape_handler(int number) {
  (void)number;
  struct path *p = shape_path;
  shape_path = NULL;
  shape_next(p);
  USED(p);
}
KEPT static void shape_signal(struct path *p) {
  struct sigaction action = {.sa_handler = shape_handler, .sa_flags = SA_NODEFER};
  sigaction(SIGUSR1, &action, NULL);
  shape_path = p;
  raise(SIGUSR1);
  USED(p);
}

static void (*const shapes[])(struct path *) = {
    shape_small,     shape_locals,         shape_registers,       shape_alloca,  shape_vla,  shape_aligned32,
    shape_aligned64, shape_aligned_alloca, shape_stack_arguments, shape_forced,  shape_o0,   shape_frame_pointer,
    shape_o3,        shape_scratch_bp,     shape_qsort,           shape_bsearch, shape_huge, shape_signal,
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

KEPT static void shape_next(struct path *p) {
  if (p->left--)
    shapes[*p->step++ % SHAPES](p);
  else
    p->end();
  USED(p);
}
