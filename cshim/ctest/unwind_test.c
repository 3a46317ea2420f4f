/* Native stacks, address by address against libgcc's unwinder. */
#define _GNU_SOURCE
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "backtrace.h"
#include "check.h"
#include "elf/loaded.h"
#include "shapes.h"
#include "unwind/rows.h"

static __thread struct backtrace ours, theirs;
static __thread bool differs;

/* Takes both stacks of its caller. */
__attribute__((noinline)) static bool compare(void) {
  const struct mt_frame *frame = __builtin_frame_address(0);
  struct mt_stack_bounds bounds;
  if (!mt_stack_find((uintptr_t)frame, &bounds)) return false;
  ours.n = mt_unwind(frame, &bounds, ours.pc, MT_NATIVE_MAX, true, &ours.end);
  backtrace_expected(frame, &theirs);
  return backtrace_equal(&ours, &theirs);
}

static void print(const char *who, const struct backtrace *t) {
  fprintf(stderr, "%s:", who);
  for (unsigned i = 0; i < t->n; i++) {
    Dl_info info = {0};
    dladdr((void *)t->pc[i], &info);
    fprintf(stderr, " %#llx(%s)", (unsigned long long)t->pc[i], info.dli_sname ? info.dli_sname : "?");
  }
  fprintf(stderr, " end %d\n", t->end);
}

static void compare_whole(void) {
  bool equal = compare();
  if (differs) return;
  differs = !equal || ours.end != MT_STACK_WHOLE;
  CHECK(equal);
  CHECK_EQ(ours.end, MT_STACK_WHOLE);
  if (differs) print("ours", &ours), print("theirs", &theirs);
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

/* The thread sanitizer delivers signals when it sees fit. */
#ifdef __SANITIZE_THREAD__
enum { PROMPT_SHAPES = SHAPES - 1 };
#else
enum { PROMPT_SHAPES = SHAPES };
#endif

static void run_path(const uint8_t *steps, unsigned n, void (*end)(void)) {
  struct path p = {steps, n, end};
  shape_next(&p);
}

static void every_shape(void) {
  for (uint8_t i = 0; i < SHAPES; i++) {
    differs = false;
    run_path((uint8_t[]){i, i, i}, 3, compare_whole);
    if (differs) fprintf(stderr, "shape %u\n", i);
  }
}

/* Where the stack holds copies of the return address that are left over, the stack may end; it never goes on wrongly.
 */
static unsigned realigned_whole, realigned_cut;
static void compare_realigned(void) {
  compare();
  CHECK(ours.n <= theirs.n && !memcmp(ours.pc, theirs.pc, ours.n * sizeof *ours.pc));
  if (ours.n == theirs.n)
    realigned_whole++;
  else
    CHECK_EQ(ours.end, MT_STACK_UNSUPPORTED), realigned_cut++;
}

static void realigned(void) {
  uint64_t state = 4711;
  for (unsigned i = 0; i < 1000; i++) {
    uint8_t steps[8];
    for (unsigned k = 0; k < sizeof steps; k++) steps[k] = (uint8_t)(next_random(&state) % PROMPT_SHAPES);
    struct path p = {steps, sizeof steps, compare_realigned};
    shape_realigned(&p);
  }
  CHECK(realigned_whole > 500);
}

#define CHAINS 10000

static void random_chains(void) {
  uint64_t state = 88172645463325252ull;
  unsigned compared = 0;
  for (unsigned i = 0; i < CHAINS && !differs; i++, compared++) {
    uint8_t steps[32];
    unsigned n = 1 + (unsigned)(next_random(&state) % sizeof steps);
    for (unsigned k = 0; k < n; k++) steps[k] = (uint8_t)(next_random(&state) % PROMPT_SHAPES);
    run_path(steps, n, compare_whole);
  }
  CHECK_EQ(compared, CHAINS);
}

__attribute__((noinline)) static int recurse(int n, void (*end)(void)) {
  if (n)
    n = recurse(n - 1, end) + 1;
  else
    end();
  USED(&n);
  return n;
}

static void recursion(void) {
  recurse(100, compare_whole);
  CHECK(ours.n > 100);
  recurse(1000, (void (*)(void))compare); /* libgcc's is cut by the same limit */
  CHECK_EQ(ours.n, MT_NATIVE_MAX);
  CHECK_EQ(ours.end, MT_STACK_DEPTH);
}

static void cut_depth(void) {
  const struct mt_frame *frame = __builtin_frame_address(0);
  struct mt_stack_bounds bounds;
  struct backtrace cut;
  CHECK(mt_stack_find((uintptr_t)frame, &bounds));
  backtrace_expected(frame, &theirs);
  CHECK(theirs.n > 20);
  for (unsigned depth = 1; depth <= theirs.n; depth++) {
    cut.pc[depth] = 0x5a5a;
    cut.n = mt_unwind(frame, &bounds, cut.pc, depth, true, &cut.end);
    CHECK_EQ(cut.n, depth);
    CHECK_EQ(cut.end, depth < theirs.n ? MT_STACK_DEPTH : MT_STACK_WHOLE);
    CHECK(!memcmp(cut.pc, theirs.pc, depth * sizeof *cut.pc));
    CHECK_EQ(cut.pc[depth], 0x5a5a);
  }
}
static void depth(void) { recurse(20, cut_depth); }

static void cut_bounds(void) {
  const struct mt_frame *frame = __builtin_frame_address(0);
  struct mt_stack_bounds bounds;
  CHECK(mt_stack_find((uintptr_t)frame, &bounds));
  backtrace_expected(frame, &theirs);
  bounds.top = (uintptr_t)frame + 400; /* in the middle of the recursion */
  ours.n = mt_unwind(frame, &bounds, ours.pc, MT_NATIVE_MAX, true, &ours.end);
  CHECK(ours.n > 2 && ours.n < theirs.n);
  CHECK_EQ(ours.end, MT_STACK_BOUNDS);
  CHECK(!memcmp(ours.pc, theirs.pc, ours.n * sizeof *ours.pc));
}
static void bounds(void) { recurse(60, cut_bounds); }

/* The innermost interpreter frame is the last that is written, unless all are wanted. */
static void stop_within(void) {
  const struct mt_frame *frame = __builtin_frame_address(0);
  struct mt_stack_bounds bounds;
  uintptr_t start, end;
  CHECK(mt_stack_find((uintptr_t)frame, &bounds));
  backtrace_expected(frame, &theirs);
  CHECK(mt_unwind_function((uintptr_t)shape_locals, &start, &end));
  CHECK_EQ(start, (uintptr_t)shape_locals);
  CHECK(end > start && !mt_unwind_function(8, &start, &end));
  mt_unwind_stop_at(start, end);
  ours.n = mt_unwind(frame, &bounds, ours.pc, MT_NATIVE_MAX, false, &ours.end);
  CHECK_EQ(ours.end, MT_STACK_INTERPRETER);
  CHECK(ours.n > 2 && ours.n < theirs.n && ours.pc[ours.n - 1] >= start && ours.pc[ours.n - 1] < end);
  for (unsigned i = 0; i + 1 < ours.n; i++) CHECK(ours.pc[i] < start || ours.pc[i] >= end);
  CHECK(!memcmp(ours.pc, theirs.pc, ours.n * sizeof *ours.pc));
  unsigned cut = ours.n;
  mt_unwind_stop_at(theirs.pc[0] - 1, theirs.pc[0] + 1); /* adds up */
  ours.n = mt_unwind(frame, &bounds, ours.pc, MT_NATIVE_MAX, false, &ours.end);
  CHECK_EQ(ours.n, 1);
  CHECK_EQ(ours.end, MT_STACK_INTERPRETER);
  CHECK(cut > 1);
  ours.n = mt_unwind(frame, &bounds, ours.pc, MT_NATIVE_MAX, true, &ours.end);
  CHECK(backtrace_equal(&ours, &theirs));
  mt_unwind_stop_at(0, 0);
  ours.n = mt_unwind(frame, &bounds, ours.pc, MT_NATIVE_MAX, false, &ours.end);
  CHECK(backtrace_equal(&ours, &theirs));
}
static void stop(void) { run_path((uint8_t[]){0, 1, 0, 1, 0, 3, 0}, 7, stop_within); }

/* A handler on a stack of its own, over code that was interrupted at the first instruction of a function: the row of
 * the byte before it is another function's. */
void interrupted_entry(void);
__asm__(".pushsection .text\n .type before_entry, @function\n"
        "before_entry:\n .cfi_startproc\n .cfi_def_cfa_offset 4096\n nop\n .cfi_endproc\n .size before_entry, "
        ".-before_entry\n"
        ".globl interrupted_entry\n .type interrupted_entry, @function\n"
        "interrupted_entry:\n .cfi_startproc\n ud2\n ret\n .cfi_endproc\n .size interrupted_entry, "
        ".-interrupted_entry\n .popsection\n");

static void trapped(int number, siginfo_t *info, void *context) {
  (void)number, (void)info;
  compare_whole();
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void interrupt(void) {
  interrupted_entry();
  USED(&ours);
}

static void signals(void) {
  static char room[65536] __attribute__((aligned(4096)));
  struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
  sigaction(SIGILL, &action, NULL);
  recurse(3, interrupt);
  CHECK(ours.n > 6);
  stack_t alternative = {.ss_sp = room, .ss_size = sizeof room};
  CHECK(!sigaltstack(&alternative, NULL));
  action.sa_flags |= SA_ONSTACK;
  sigaction(SIGILL, &action, NULL);
  unsigned before = ours.n;
  recurse(3, interrupt);
  CHECK_EQ(ours.n, before);
}

static ucontext_t fiber_context, main_context;
static void in_fiber(void) {
  run_path((uint8_t[]){0, 5, 7, 9, 11}, 5, compare_whole);
  swapcontext(&fiber_context, &main_context);
}

static void run_fiber(void *stack, size_t size) {
  getcontext(&fiber_context);
  fiber_context.uc_stack.ss_sp = stack;
  fiber_context.uc_stack.ss_size = size;
  makecontext(&fiber_context, in_fiber, 0);
  ours.n = 0;
  swapcontext(&main_context, &fiber_context);
  CHECK(ours.n > 10);
}

static void fiber(void) {
  static char room[65536] __attribute__((aligned(4096)));
  run_fiber(room, sizeof room);
  run_fiber(mmap(NULL, sizeof room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), sizeof room);
}

static void *in_small_thread(void *argument) {
  (void)argument;
  run_path((uint8_t[]){0, 1, 5}, 3, compare_whole);
  return NULL;
}

static void small_thread(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  CHECK(!pthread_attr_setstacksize(
      &attributes, CHECK_SANITIZED ? 262144 : 16384 + 8192 /* the traces of this test are thread-local */));
  CHECK(!pthread_create(&thread, &attributes, in_small_thread, NULL));
  pthread_join(thread, NULL);
}

/* Code compiled at run time: calls its argument, with a frame pointer or with anything else in that register. */
static const uint8_t jit_framed[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
static const uint8_t jit_bare[] = {0x55, 0xbd, 0x11, 0x22, 0x33, 0x00, 0xff, 0xd7, 0x5d, 0xc3};
static void (*jit_code[2])(void (*)(void));
static struct backtrace outside;

static void in_jit(void) {
  compare();
  USED(&ours);
}
static void in_two_jits(void) {
  jit_code[0](in_jit);
  USED(&ours);
}

__attribute__((noinline)) static void call_jit(void (*code)(void (*)(void)), void (*what)(void)) {
  const struct mt_frame *frame = __builtin_frame_address(0);
  backtrace_expected(frame, &outside);
  code(what);
  USED(frame);
}

static void check_jit(unsigned inner) { /* inner frames, then call_jit, then what was outside of it */
  CHECK_EQ(ours.end, MT_STACK_WHOLE);
  CHECK_EQ(ours.n, inner + 1 + outside.n);
  CHECK(!memcmp(ours.pc + inner + 1, outside.pc, outside.n * sizeof *outside.pc));
  CHECK(ours.n > theirs.n); /* where libgcc gives up */
  CHECK(!memcmp(ours.pc, theirs.pc, theirs.n * sizeof *ours.pc));
}

static void jit(void) {
  uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(code != MAP_FAILED);
  memcpy(code, jit_framed, sizeof jit_framed);
  memcpy(code + 64, jit_bare, sizeof jit_bare);
  jit_code[0] = (void (*)(void (*)(void)))code;
  jit_code[1] = (void (*)(void (*)(void)))(code + 64);
  call_jit(jit_code[0], in_jit);
  check_jit(2);
  call_jit(jit_code[0], in_two_jits);
  check_jit(4);
  call_jit(jit_code[1], in_jit);
  CHECK_EQ(ours.end, MT_STACK_NO_ROW);
  CHECK(backtrace_equal(&ours, &theirs));
}

/* Libraries that the script has put beside this program. */
static void *open_beside(const char *name) {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
  path[n > 0 ? n : 0] = 0;
  char *slash = strrchr(path, '/');
  if (slash) strcpy(slash + 1, name);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static unsigned reached; /* of one thread */
static void count_whole(void) {
  reached++;
  compare_whole();
}

static void cxx(void) {
  void *library = open_beside("unwind_cxx.so");
  if (!library) {
    check_skip("no C++ compiler");
    return;
  }
  void (*run)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(library, "unwind_cxx");
  CHECK(run);
  run(count_whole);
  CHECK_EQ(reached, 9);
}

/* Two libraries with the same code but for the width of its frame, one after the other at the same place. */
static void reloaded(void) {
  static const char *const names[] = {"unwind_narrow.so", "unwind_wide.so"};
  void *place[4];
  for (int i = 0; i < 4; i++) {
    void *library = open_beside(names[i % 2]);
    CHECK(library);
    if (!library) return;
    void (*run)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(library, "unwind_reloaded");
    place[i] = (void *)run;
    run(count_whole);
    run(count_whole);
    dlclose(library);
    mt_unwind_invalidate();
  }
  CHECK_EQ(reached, 8);
  if (!CHECK_SANITIZED) CHECK(place[0] == place[1] && place[1] == place[2]); /* or this tested nothing */
}

/* Rows of a library that is gone give wrong frames, and no more. */
static void stale(void) {
  static const char *const names[] = {"unwind_narrow.so", "unwind_wide.so"};
  for (int i = 0; i < 4; i++) {
    void *library = open_beside(names[i % 2]);
    CHECK(library);
    if (!library) return;
    void (*run)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(library, "unwind_reloaded");
    run((void (*)(void))compare);
    CHECK(ours.n >= 2 && ours.pc[0] == theirs.pc[0]);
    dlclose(library);
  }
  mt_unwind_invalidate();
  recurse(5, compare_whole);
}

/* As with a C library that cannot tell which object holds an address. */
static void by_snapshot(void) {
  mt_loaded_forced = true;
  mt_unwind_start();
  recurse(5, compare_whole);
  run_path((uint8_t[]){14, 5, 15, SHAPES - 1, 7}, 5, compare_whole);
  void *library = open_beside("unwind_narrow.so");
  CHECK(library);
  if (!library) return;
  void (*run)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(library, "unwind_reloaded");
  uintptr_t start, end;
  CHECK(!mt_unwind_function((uintptr_t)run + 1, &start, &end));
  run((void (*)(void))compare);
  mt_unwind_refresh();
  CHECK(mt_unwind_function((uintptr_t)run + 1, &start, &end));
  run(count_whole);
  CHECK_EQ(reached, 1);
  dlclose(library);
  mt_unwind_invalidate();
  CHECK(!mt_unwind_function((uintptr_t)run + 1, &start, &end));
  recurse(5, compare_whole);
}

/* Stacks of words that may be anything, with nothing to read above and below: return addresses of all kinds of frames,
 * pointers into the stack, and noise. */
static struct backtrace real_frames;
static void keep_frames(void) {
  compare();
  real_frames = theirs;
}

static void damaged_stacks(void) {
  enum { WORDS = 512 };
  uint64_t state = 99991, ends[MT_STACK_CALLER + 1] = {0};
  uint8_t *room = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(!mprotect(room + 4096, 4096, PROT_READ | PROT_WRITE));
  uintptr_t *stack = (uintptr_t *)(room + 4096), low = (uintptr_t)stack;
  const struct mt_stack_bounds within = {low, low + 4096};
  run_path((uint8_t[]){0, 5, 7, 8, 10, 11, 14, 15, SHAPES - 1, 16}, 10, keep_frames);
  CHECK(real_frames.n > 20);
  for (unsigned i = 0; i < 50000; i++) {
    for (unsigned k = 0; k < WORDS; k++) {
      uint64_t r = next_random(&state);
      uintptr_t into = low + r / 64 % 4096;
      stack[k] = r % 8 < 4    ? real_frames.pc[r / 64 % real_frames.n]
                 : r % 8 < 6  ? into & ~7ull
                 : r % 8 == 6 ? into
                              : r >> r / 8 % 64;
    }
    unsigned at = (unsigned)(next_random(&state) % (WORDS - 1)), depth = 1 + (unsigned)(next_random(&state) % 64);
    ours.n = mt_unwind((struct mt_frame *)(stack + at), &within, ours.pc, depth, true, &ours.end);
    CHECK(ours.n >= 1 && ours.n <= depth && (unsigned)ours.end < MT_STACK_CALLER && ours.pc[0] == stack[at + 1]);
    ends[ours.end]++;
  }
  CHECK(ends[MT_STACK_BOUNDS] && ends[MT_STACK_NO_ROW] && ends[MT_STACK_WHOLE] && ends[MT_STACK_DEPTH]);
}

static uint32_t running;
static void unwind_some(uint64_t number) {
  uint64_t state = 7919 * (number + 1);
  if (!number) { /* as at every dlclose */
    for (unsigned i = 0; i < 200 || __atomic_load_n(&running, __ATOMIC_ACQUIRE); i++)
      mt_unwind_invalidate(), usleep(100);
    return;
  }
  __atomic_add_fetch(&running, 1, __ATOMIC_ACQ_REL);
  for (unsigned i = 0; i < 500; i++) {
    uint8_t steps[16];
    for (unsigned k = 0; k < sizeof steps; k++)
      steps[k] = (uint8_t)(next_random(&state) % (SHAPES - 1)); /* without signals: they are handled by any thread */
    run_path(steps, sizeof steps, compare_whole);
  }
  __atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL);
}
static void threads(void) { check_threads(5, unwind_some); }

int main(void) {
  static const struct check_case cases[] = {
      {"every shape", every_shape},
      {"realigned", realigned},
      {"recursion", recursion},
      {"depth", depth},
      {"bounds", bounds},
      {"stop", stop},
      {"signals", signals},
      {"fiber", fiber},
      {"small thread", small_thread},
      {"code compiled at run time", jit},
      {"C++", cxx},
      {"library reloaded", reloaded},
      {"stale rows", stale},
      {"snapshot of modules", by_snapshot},
      {"damaged stacks", damaged_stacks},
      {"threads", threads},
      {"random chains", random_chains},
  };
  return check_main("unwind", cases, sizeof cases / sizeof *cases);
}
