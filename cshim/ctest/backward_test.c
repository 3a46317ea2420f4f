/* Operators of the backward pass: how a node looks inside is found out, with nodes of both layouts and with what is none. */
#define _GNU_SOURCE
#include "../backward.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backward_torch.h"
#include "check.h"

static struct fake *state, *c10_state; /* each library has its own */
static uint32_t (*owners)(void);
static void (*reset)(void), (*update_torch)(void), (*update_c10)(void);

enum { THREAD = 3 };
#define GARBAGE 0xfefefefefefefe00 /* where a node has no field */

/* The fake libraries lie beside the test. */
static void *load(const char *name) {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
  path[n > 0 ? n : 0] = 0;
  strcpy(strrchr(path, '/') + 1, name);
  void *library = dlopen(path, RTLD_NOW);
  if (!library) check_skip(dlerror());
  CHECK(library != NULL);
  return library;
}

static void *load_torch_from(const char *name) {
  void *torch = load(name), *c10 = load(strstr(name, "variables") ? "variables/libc10.so" : "libc10.so");
  if (!torch || !c10) _exit(1);
  state = dlsym(torch, "fake");
  c10_state = dlsym(c10, "fake");
  *(void **)&owners = dlsym(torch, "fake_owners");
  *(void **)&reset = dlsym(torch, "fake_reset");
  *(void **)&update_torch = dlsym(torch, "fake_update");
  *(void **)&update_c10 = dlsym(c10, "fake_update");
  state->thread = state->maker = THREAD;
  return torch;
}

static void *load_torch(void) { return load_torch_from("libtorch_cpu.so"); }

/* The variables of the calling thread as the fake's state is now. */
static void update(void) { update_torch(), update_c10(); }

static void look(enum fake_kind kind, uint64_t number, uint64_t height) {
  reset();
  state->kind = kind;
  state->number = number;
  state->height = height;
  state->pointed = GARBAGE | 1;
  state->next = 42, c10_state->records = false;
  update();
  mt_backward_look();
}

static bool begin(void) {
  state->kind = FAKE_NONE, state->next = 40, c10_state->records = true;
  update();
  return mt_backward_begin();
}

static bool end(uint64_t first, uint64_t second) {
  enum fake_kind kind = state->kind;
  state->kind = FAKE_NONE, c10_state->records = true;
  update();
  bool found = mt_backward_end(first, second);
  state->kind = kind;
  return found;
}

/* The first node that runs is the last one that was made. */
static bool test(enum fake_kind first, uint64_t a, enum fake_kind second, uint64_t b) {
  if (!begin()) return false;
  look(first, a, 2);
  look(second, b, 1);
  return end(41, 40);
}

static uint64_t op_in(struct mt_thread *self, bool forward) {
  update();
  return mt_backward_op(self, forward);
}

/* In a thread that was not met yet. */
static uint64_t op(bool forward) {
  static struct mt_thread self;
  self.op_met = 0;
  return op_in(&self, forward);
}

static uint64_t by_thread(uint64_t thread, uint64_t number) { return thread << MT_OP_BITS | number; }

static void is_absent(void) {
  CHECK(!mt_backward_begin());
  CHECK(!mt_backward_known());
  load("libtorch_cpu.so"); /* without the other one */
  CHECK(!mt_backward_begin());
}

static void operators(enum fake_kind kind, const char *torch) {
  load_torch_from(torch);
  const uint64_t ours = strstr(torch, "threadless") ? 0 : THREAD, theirs = ours ? 9 : 0;
  CHECK(test(kind, 41, kind, 40));
  CHECK(mt_backward_known());
  CHECK_EQ(owners(), 1); /* what was taken was given back */
  state->next = 7;
  state->number = 99;
  state->maker = 9; /* another thread's graph */
  for (state->owners = 1; state->owners < 3; state->owners++) {
    reset();
    c10_state->records = true;
    CHECK_EQ(op(true), by_thread(ours, 7)); /* a part of the forward pass that is computed again */
    CHECK_EQ(op(false), by_thread(theirs, 100) | MT_OP_BACKWARD);
    c10_state->records = false;
    CHECK_EQ(op(true), by_thread(theirs, 100) | MT_OP_BACKWARD);
    CHECK_EQ(owners(), state->owners);
  }
  state->number = UINT64_MAX; /* it only sums gradients up */
  CHECK_EQ(op(true), 0);
  CHECK_EQ(op(false), 0);
  state->number = 7 * (MT_OP_NUMBER + 1) - 2; /* numbers begin again when their bits are full */
  CHECK_EQ(op(false), by_thread(theirs, MT_OP_NUMBER) | MT_OP_BACKWARD);
  state->number++;
  CHECK_EQ(op(false), 0);
  state->number++;
  CHECK_EQ(op(false), by_thread(theirs, 1) | MT_OP_BACKWARD);
  state->kind = FAKE_NONE;
  CHECK_EQ(op(true), by_thread(ours, 7));
  CHECK_EQ(op(false), 0);
  state->next = 5 * (MT_OP_NUMBER + 1) + 8;
  CHECK_EQ(op(true), by_thread(ours, 8));
  state->next = 0; /* it has recorded no operator */
  CHECK_EQ(op(true), 0);
}

static void shared(void) { operators(FAKE_SHARED, "libtorch_cpu.so"); }
static void intrusive(void) { operators(FAKE_INTRUSIVE, "libtorch_cpu.so"); }
static void shared_threadless(void) { operators(FAKE_SHARED, "threadless/libtorch_cpu.so"); }
static void intrusive_threadless(void) { operators(FAKE_INTRUSIVE, "threadless/libtorch_cpu.so"); }

static void shared_variables(void) { operators(FAKE_SHARED, "variables/libtorch_cpu.so"); }
static void intrusive_variables(void) { operators(FAKE_INTRUSIVE, "variables/libtorch_cpu.so"); }

static unsigned calls(void) { return state->calls + c10_state->calls; }

static struct mt_thread met; /* the test's own thread, once it was met */

/* Answers that follow what the fake does, in a thread that was met or not; how many functions were asked after the first one. */
static unsigned calls_in(struct mt_thread *self) {
  unsigned before = 0;
  for (unsigned i = 0; i < 4; i++) {
    reset();
    state->kind = i & 1 ? FAKE_SHARED : FAKE_NONE, state->number = 99 + i, state->next = 7 + i, c10_state->records = i & 2;
    const uint64_t node = i & 1 ? by_thread(THREAD, 100 + i) | MT_OP_BACKWARD : 0, own = by_thread(THREAD, 7 + i);
    CHECK_EQ(op_in(self, true), node && !(i & 2) ? node : own);
    CHECK_EQ(op_in(self, false), node);
    if (node) CHECK_EQ(owners(), 1);
    if (!i) before = calls();
  }
  return calls() - before;
}

static void *stranger(void *unused) {
  (void)unused;
  static struct mt_thread self;
  CHECK_EQ(calls_in(&self), 0);
  return NULL;
}

static void in_thread(void *(*run)(void *)) {
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, run, NULL));
  pthread_join(thread, NULL);
}

/* No function is asked, in any thread, where the variables are known; where they are not, functions are, and say the same. */
static void variables(void) {
  load_torch_from("variables/libtorch_cpu.so");
  CHECK(test(FAKE_SHARED, 41, FAKE_SHARED, 40));
  CHECK(mt_backward_is_quick());
  CHECK_EQ(calls_in(&met), 0);
  in_thread(stranger);
  CHECK_EQ(calls_in(&met), 0);
  struct mt_thread another = {0};
  state->next = 1000;
  update();
  state->stale = c10_state->stale = true;
  CHECK(calls_in(&another) > 0); /* what does not hold what the function says is not believed */
  state->stale = c10_state->stale = false;
  CHECK(calls_in(&another) > 0);
  mt_backward.layout = MT_NODE_UNKNOWN;
  state->twins = c10_state->twins = true;
  CHECK(test(FAKE_SHARED, 41, FAKE_SHARED, 40));
  CHECK_EQ(mt_backward.next_word, MT_TLSWORD_NONE);
  CHECK_EQ(mt_backward.node_word, MT_TLSWORD_NONE);
  CHECK_EQ(mt_backward.records_bit, MT_TLSWORD_NONE);
  CHECK(!mt_backward_is_quick());
  another = (struct mt_thread){0};
  CHECK(calls_in(&another) > 0);
}

/* Numbers of threads begin again when their bits are full, and a thread is asked for its own once. */
static void makers(void) {
  load_torch();
  CHECK(test(FAKE_SHARED, 41, FAKE_SHARED, 40));
  reset();
  state->number = 99;
  state->maker = MT_OP_THREAD + 6;
  CHECK_EQ(op(false), by_thread(5, 100) | MT_OP_BACKWARD);
  state->maker = MT_OP_THREAD + 1;
  CHECK_EQ(op(false), 100 | MT_OP_BACKWARD);
  c10_state->records = true;
  state->next = 7;
  state->thread = MT_OP_THREAD + 1; /* what says nothing is remembered, too */
  static struct mt_thread self, other;
  state->asked = 0;
  for (unsigned i = 0; i < 3; i++) CHECK_EQ(op_in(&self, true), 7);
  CHECK_EQ(state->asked, 1);
  state->thread = MT_OP_THREAD + 6;
  for (unsigned i = 0; i < 3; i++) CHECK_EQ(op_in(&other, true), by_thread(5, 7));
  CHECK_EQ(state->asked, 2);
}

/* What does not look like a thread's number is not taken for one, and operators are told all the same. */
static void no_maker(enum fake_kind kind) {
  load_torch();
  static const struct {
    const char *about;
    uint64_t thread, makers[2], heights[2], pointed[2];
    bool edge;
  } wrong[] = {
      {"not in the first", 1, {2, 1}, {2, 1}, {1, 1}, false},
      {"not in the second", 1, {1, 2}, {2, 1}, {1, 1}, false},
      {"another thread's", 1, {2, 2}, {2, 1}, {1, 1}, false},
      {"threads without numbers", 0, {0, 0}, {2, 1}, {1, 1}, false},
      {"nodes as high as each other", 1, {1, 1}, {1, 1}, {1, 1}, false},
      {"nodes too far from each other", 1, {1, 1}, {3, 1}, {1, 1}, false},
      {"a node that follows none", 1, {1, 1}, {1, 0}, {1, 1}, false},
      {"a second that nobody points to", 1, {1, 1}, {2, 1}, {1, 0}, false},
      {"what is no yes or no", 1, {1, 1}, {2, 1}, {2, 1}, false},
      {"the end of memory", 1, {1, 1}, {2, 1}, {1, 1}, true},
  };
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    mt_backward.layout = MT_NODE_UNKNOWN;
    CHECK(begin());
    state->thread = wrong[i].thread;
    state->edge = wrong[i].edge;
    for (unsigned n = 0; n < 2; n++) {
      reset();
      state->kind = kind;
      state->number = 41 - n, state->height = wrong[i].heights[n], state->pointed = GARBAGE | wrong[i].pointed[n], state->maker = wrong[i].makers[n];
      mt_backward_look();
    }
    CHECK(end(41, 40));
    if (mt_backward.thread) fprintf(stderr, "%s passes for a thread's number\n", wrong[i].about);
    CHECK(!mt_backward.thread);
    state->number = 99;
    CHECK_EQ(op(false), 100 | MT_OP_BACKWARD);
    state->next = 7;
    c10_state->records = true;
    CHECK_EQ(op(true), 7);
  }
  state->edge = false;
  state->maker = state->thread = THREAD;
  mt_backward.layout = MT_NODE_UNKNOWN;
  CHECK(test(kind, 41, kind, 40));
  CHECK(mt_backward.thread != NULL);
}

static void shared_no_maker(void) { no_maker(FAKE_SHARED); }
static void intrusive_no_maker(void) { no_maker(FAKE_INTRUSIVE); }

static void garbage(void) {
  load_torch();
  for (enum fake_kind kind = FAKE_NONE; kind <= FAKE_CHANGING; kind++)
    for (enum fake_kind other = FAKE_NONE; other <= FAKE_CHANGING; other++) {
      bool good = kind == other && (kind == FAKE_SHARED || kind == FAKE_INTRUSIVE);
      if (!good && test(kind, 41, other, 40)) CHECK(!"a layout from what is no node");
    }
  CHECK(!test(FAKE_SHARED, 40, FAKE_SHARED, 41));
  CHECK(!test(FAKE_SHARED, 41, FAKE_SHARED, 41));
  CHECK(!test(FAKE_INTRUSIVE, 0, FAKE_INTRUSIVE, 40));
  CHECK(begin());
  look(FAKE_SHARED, 41, 2);
  CHECK(!end(41, 40)); /* one look is not enough */
  CHECK(!end(41, 40));
  CHECK(begin());
  look(FAKE_SHARED, 40, 2), look(FAKE_SHARED, 40, 1);
  CHECK(!end(40, 40)); /* nor are two at the same number */
  CHECK(!mt_backward_known());
  CHECK_EQ(mt_backward_known(), false);
  CHECK(test(FAKE_SHARED, 41, FAKE_SHARED, 40)); /* and after all that it is found */
}

static void *look_and_end(void *unused) {
  (void)unused;
  look(FAKE_SHARED, 41, 2), look(FAKE_SHARED, 40, 1);
  CHECK(!end(41, 40));
  return NULL;
}

static void *begin_only(void *unused) {
  (void)unused;
  CHECK(begin());
  return NULL;
}

/* A test is one thread's. */
static void threads(void) {
  load_torch();
  CHECK(begin());
  in_thread(look_and_end);
  in_thread(begin_only);
  look(FAKE_SHARED, 41, 2), look(FAKE_SHARED, 40, 1);
  CHECK(!end(41, 40));
  CHECK(test(FAKE_SHARED, 41, FAKE_SHARED, 40));
}

static void unloaded(void) {
  void *torch = load_torch_from("variables/libtorch_cpu.so");
  CHECK(test(FAKE_INTRUSIVE, 41, FAKE_INTRUSIVE, 40));
  c10_state->records = true;
  state->next = 6;
  CHECK_EQ(op_in(&met, true), by_thread(THREAD, 6));
  mt_backward_forget();
  CHECK(mt_backward_known());
  CHECK(mt_backward.thread != NULL);
  dlclose(torch);
  mt_backward_forget();
  CHECK(!mt_backward_known());
  load_torch_from("variables/libtorch_cpu.so");
  state->thread = state->maker = THREAD + 1;
  CHECK(test(FAKE_INTRUSIVE, 41, FAKE_INTRUSIVE, 40));
  state->next = 7;
  CHECK_EQ(op_in(&met, true), by_thread(THREAD + 1, 7)); /* not what the other one called it */
}

int main(void) {
  static const struct check_case cases[] = {
      {"is_absent", is_absent}, {"shared", shared}, {"intrusive", intrusive}, {"shared_threadless", shared_threadless}, {"intrusive_threadless", intrusive_threadless},
      {"shared_variables", shared_variables}, {"intrusive_variables", intrusive_variables}, {"variables", variables}, {"makers", makers}, {"shared_no_maker", shared_no_maker}, {"intrusive_no_maker", intrusive_no_maker}, {"garbage", garbage}, {"threads", threads}, {"unloaded", unloaded},
  };
  return check_main("backward", cases, sizeof cases / sizeof *cases);
}
