/* Native stacks that are found again by comparing: the same as a walk finds, whatever lies on the stack. */
#define _GNU_SOURCE
#include "record/capture.h"

#include <pthread.h>
#include <setjmp.h>
#include <string.h>

#include "base/config.h"
#include "check.h"
#include "hooks/call.h"
#include "shapes.h"
#include "spool/dict.h"
#include "spool/nativestack.h"
#include "spool/region.h"
#include "unwind/memo.h"

enum { PATHS = 40, STEPS = 24, ROUNDS = 60 };

static __thread unsigned captures, wrong;

/* What the dictionary says of the id is what a walk says now. */
static bool is_walked(uint32_t id, const struct mt_frame *frame) {
  uint64_t fresh[1 + MT_NATIVE_MAX];
  struct mt_stack_bounds bounds;
  enum mt_stack_end end;
  if (!id || !mt_stack_find((uintptr_t)frame, &bounds)) return false;
  unsigned count = mt_unwind(frame, &bounds, fresh + 1, mt_config.native_depth, mt_config.whole_stacks, &end);
  fresh[0] = end;
  const struct mt_index_entry *entry = &mt_index()[id - 1];
  return entry->kind == MT_DICT_STACK && entry->length == (1 + count) * sizeof *fresh &&
         !memcmp(mt_data() + entry->offset, fresh, entry->length);
}

/* Stands for a hook. */
KEPT static void hook(void) {
  const struct mt_frame *frame = __builtin_frame_address(0);
  struct mt_stacks stacks = mt_capture(mt_thread_get(), frame, frame->caller, MT_ALLOC);
  captures++;
  wrong += !is_walked(stacks.native, frame);
}

static void along(const uint8_t *steps, unsigned count) {
  struct path path = {steps, count, hook};
  shape_next(&path);
}

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

/* A program's loop: the same calls in the same order, now and then some that differ by one step or by depth. */
static void loop(uint64_t seed) {
  static const uint8_t even[] = {0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15},
                       odd[] = {5, 7, 8, 9, 16, 17}; /* frames of the odd ones are never remembered */
  uint8_t paths[PATHS][STEPS];
  unsigned lengths[PATHS];
  uint32_t random = (uint32_t)seed + 1;
  for (unsigned i = 0; i < PATHS; i++) {
    lengths[i] = 1 + next_random(&random) / 65536 % STEPS;
    for (unsigned j = 0; j < STEPS; j++) paths[i][j] = even[next_random(&random) / 65536 % sizeof even];
    if (i % 8 == 7) paths[i][lengths[i] / 2] = odd[i / 8 % sizeof odd];
  }
  for (unsigned round = 0; round < ROUNDS; round++)
    for (unsigned i = 0; i < PATHS; i++) {
      uint8_t changed[STEPS];
      unsigned length = lengths[i];
      memcpy(changed, paths[i], STEPS);
      if (next_random(&random) >> 27 == 0)
        changed[next_random(&random) / 65536 % length] = even[next_random(&random) / 65536 % sizeof even];
      if (next_random(&random) >> 27 == 0) length = 1 + next_random(&random) / 65536 % STEPS;
      along(changed, length);
    }
}

static void begin(void) {
  check_output("stacks.bin");
  check_event(1);
  mt_config.python_depth = 0;
}

static void finds_what_a_walk_finds(void) {
  begin();
  loop(1);
  CHECK_EQ(captures, PATHS * ROUNDS);
  CHECK_EQ(wrong, 0);
  CHECK(mt_thread_get()->walks < captures / 2); /* most of them without a walk */
}

static void at_any_depth(void) {
  begin();
  for (unsigned depth = 1; depth < 20; depth += 3) {
    mt_config.native_depth = depth;
    mt_capture_invalidate(1);
    loop(depth);
  }
  CHECK_EQ(wrong, 0);
}

static void loop_and_check(uint64_t number) {
  loop(number);
  CHECK_EQ(wrong, 0);
  CHECK(mt_thread_get()->walks < captures / 2);
}

static void in_many_threads(void) {
  begin();
  check_threads(8, loop_and_check);
}

/* A stack that differs in one word only. */
KEPT static void recurse(unsigned depth, bool other) {
  if (!depth) hook();
  else if (other && depth == 3) recurse(depth - 1, false);
  else recurse(depth - 1, other);
  USED(&depth);
}

static void sees_one_word(void) {
  begin();
  for (unsigned i = 0; i < 200; i++) recurse(12, i % 4 == 2);
  CHECK_EQ(wrong, 0);
  CHECK(mt_thread_get()->walks < 100);
}

static void forgets(void) {
  begin();
  unsigned walks[12];
  for (unsigned i = 0; i < 12; i++) {
    if (i == 10) mt_capture_invalidate(0);
    recurse(5, false);
    walks[i] = mt_thread_get()->walks;
  }
  CHECK(walks[9] && walks[9] == walks[5]);
  CHECK_EQ(walks[10], walks[9] + 1);
  CHECK_EQ(wrong, 0);
}

/* After code was unloaded, the same addresses are another stack. */
static uint32_t last_id;
KEPT static void hook_for_id(void) {
  last_id =
      mt_capture(mt_thread_get(), __builtin_frame_address(0), (uintptr_t)__builtin_return_address(0), MT_ALLOC).native;
}
KEPT static uint32_t id_here(void) {
  hook_for_id();
  return last_id;
}

static void names_stacks_anew(void) {
  uint32_t ids[4];
  begin();
  for (volatile unsigned i = 0; i < 4; i++) { /* volatile: one loop with one call */
    if (i == 2) mt_capture_invalidate(1);
    if (i == 3) mt_capture_invalidate(0);
    ids[i] = id_here();
  }
  CHECK(ids[0] && ids[1] == ids[0]);
  CHECK(ids[2] != ids[0] && ids[3] == ids[2]);
}

static void caller_only(void) {
  begin();
  struct mt_stacks stacks =
      mt_capture(mt_thread_get(), __builtin_frame_address(0), (uintptr_t)__builtin_return_address(0), MT_FREE);
  const struct mt_index_entry *entry = &mt_index()[stacks.native - 1];
  CHECK_EQ(entry->length, 16);
  CHECK_EQ(*(uint64_t *)(mt_data() + entry->offset), MT_STACK_CALLER);
  mt_config.free_stacks = true;
  stacks = mt_capture(mt_thread_get(), __builtin_frame_address(0), (uintptr_t)__builtin_return_address(0), MT_FREE);
  CHECK(mt_index()[stacks.native - 1].length > 16);
  mt_config.free_stacks = false;
  mt_thread_get()->capturing = 1; /* as in a signal handler that came in between */
  stacks = mt_capture(mt_thread_get(), __builtin_frame_address(0), (uintptr_t)__builtin_return_address(0), MT_ALLOC);
  CHECK_EQ(mt_index()[stacks.native - 1].length, 16);
}

/* The child of a fork has a dictionary of its own: what its parent remembers means nothing there. */
static void after_fork_child(void) {
  for (unsigned i = 0; i < 20; i++) recurse(7, false);
  CHECK_EQ(wrong, 0);
}

static void after_fork(void) {
  if (!CHECK_FORKS_OF_THREADS) return check_skip("the thread sanitizer does not understand forks");
  begin();
  for (unsigned i = 0; i < 20; i++) recurse(7, false);
  CHECK_EQ(wrong, 0);
  CHECK_EQ(check_in_child(after_fork_child), 0);
}

/* A signal handler that jumps, or a call-back that throws, leaves calls open behind it: they are over, and the thread's
 * next ones are calls of their own. */
static jmp_buf back;
static struct mt_call open_call;
KEPT static void call_and_leave(void (*open)(struct mt_call *, uint16_t, const struct mt_frame *, int)) {
  open(&open_call, 1, __builtin_frame_address(0), 1);
  longjmp(back, 1);
}
KEPT static void call_and_come_back(void (*open)(struct mt_call *, uint16_t, const struct mt_frame *, int)) {
  char room[4096]; /* compilers for aarch64 put a function's locals above what marks its frame */
  USED(room);
  if (!setjmp(back)) call_and_leave(open);
  USED(room);
}
KEPT static void call_and_close(void) {
  struct mt_call call;
  struct mt_outcome outcome = {
      .kind = MT_ALLOC, .mem = MT_MEM_DEVICE, .addr = 4096, .size = 1, .device = 0, .owner = 1};
  const struct mt_frame *frame = __builtin_frame_address(0);
  mt_runtime_open(&call, 2, frame, 0);
  CHECK(call.outermost && call.framed && mt_thread_get()->frame == frame);
  mt_runtime_close(&call, &outcome);
}

static void left_by_a_jump(void) {
  begin();
  struct mt_thread *self = mt_thread_get();
  for (int i = 0; i < 3; i++) {
    call_and_come_back(i % 2 ? mt_driver_open : mt_runtime_open);
    CHECK(self->frame && self->ring->inflight);
    call_and_close();
    CHECK(!self->frame && !self->runtime && !self->ring->inflight && !self->reserved_seq && self->ring->calls % 2 == 0);
  }
}

/* A call inside of a signal handler that runs on a stack of its own, one that lies in a frame of the thread's, leaves
 * the interrupted one as it is. */
static const struct mt_frame *interrupted;
static void on_signal(int number) {
  (void)number;
  struct mt_call inner;
  mt_driver_open(&inner, 3, __builtin_frame_address(0), 0);
  CHECK(!inner.framed && mt_thread_get()->frame == interrupted);
  mt_driver_skip(&inner);
}
KEPT static void call_interrupted(void) {
  struct mt_call call;
  interrupted = __builtin_frame_address(0);
  mt_runtime_open(&call, 2, interrupted, 1);
  raise(SIGUSR1);
  CHECK(mt_thread_get()->frame == interrupted && mt_thread_get()->runtime == 2 && mt_thread_get()->ring->inflight);
  mt_runtime_close(&call, &(struct mt_outcome){.kind = MT_FREE, .mem = MT_MEM_DEVICE, .addr = 4096, .device = 0});
  CHECK(!mt_thread_get()->frame);
}

static void interrupted_by_a_signal(void) {
  static char elsewhere[65536];
  char within[65536];
  begin();
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(sigaltstack(&(stack_t){.ss_sp = i ? within : elsewhere, .ss_size = sizeof within}, NULL), 0);
    CHECK_EQ(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, NULL), 0);
    call_interrupted();
  }
  sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
  USED(within);
}

/* A thread that was cancelled ends where the program lets it, not inside of a hook. */
static bool came_out;
static void *run_cancelled(void *unused) {
  pthread_cancel(pthread_self());
  hook(); /* its first event: the thread is made known, its stack is looked for */
  came_out = true;
  pthread_testcancel();
  return unused;
}

static void when_cancelled(void) {
  begin();
  pthread_t thread;
  void *result;
  CHECK_EQ(pthread_create(&thread, NULL, run_cancelled, NULL), 0);
  CHECK_EQ(pthread_join(thread, &result), 0);
  CHECK(came_out && result == PTHREAD_CANCELED);
}

/* Nearly as many stacks as the dictionary has entries: all find a place in the table, and none is written twice. */
static uint32_t intern_many(void) {
  uint64_t stack[2] = {MT_STACK_CALLER, 0};
  uint32_t known = 0;
  for (stack[1] = 1; stack[1] <= MT_INDEX_MAX / 16 * 15; stack[1]++) known += mt_native_intern(stack, 1) != 0;
  return known;
}

/* Threads of the library's own write other entries meanwhile. */
static uint32_t stacks_written(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < mt_header()->index_used; i++)
    count += __atomic_load_n(&mt_index()[i].kind, __ATOMIC_ACQUIRE) == MT_DICT_STACK;
  return count;
}

static void too_many_stacks(void) {
  begin();
  uint32_t before = stacks_written(), known = intern_many(), written = stacks_written();
  CHECK_EQ(written - before, known);
  CHECK_EQ(known, MT_INDEX_MAX / 16 * 15);
  CHECK_EQ(mt_header()->lost_dict, 0);
  CHECK_EQ(intern_many(), known);
  CHECK_EQ(stacks_written(), written);
}

int main(void) {
  static const struct check_case cases[] = {
      {"finds what a walk finds", finds_what_a_walk_finds},
      {"at any depth", at_any_depth},
      {"in many threads", in_many_threads},
      {"sees one word", sees_one_word},
      {"forgets", forgets},
      {"names stacks anew", names_stacks_anew},
      {"caller only", caller_only},
      {"after fork", after_fork},
      {"left by a jump", left_by_a_jump},
      {"interrupted by a signal", interrupted_by_a_signal},
      {"when cancelled", when_cancelled},
      {"too many stacks", too_many_stacks},
  };
  return check_main("capture", cases, sizeof cases / sizeof *cases);
}
