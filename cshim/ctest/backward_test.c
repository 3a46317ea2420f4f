/* Operators of the backward pass: how a node looks inside is found out, with nodes of both layouts and with what is
 * none. */
#define _GNU_SOURCE
#include "adapters/backward.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backward_torch.h"
#include "check.h"

static struct fake *state, *c10_state, *python_state; /* each library has its own */
static uint32_t (*owners)(void);
static void (*reset)(void), (*update_torch)(void), (*update_c10)(void);

enum { THREAD = 3, SHARED_NUMBER = 24, INTRUSIVE_NUMBER = 16 };
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
  void *torch = load(name), *c10 = load(strstr(name, "variables") ? "variables/libc10.so" : "libc10.so"),
       *python = load("libtorch_python.so");
  if (!torch || !c10 || !python) _exit(1);
  state = dlsym(torch, "fake");
  c10_state = dlsym(c10, "fake");
  python_state = dlsym(python, "fake");
  *(void **)&owners = dlsym(torch, "fake_owners");
  *(void **)&reset = dlsym(torch, "fake_reset");
  *(void **)&update_torch = dlsym(torch, "fake_update");
  *(void **)&update_c10 = dlsym(c10, "fake_update");
  state->thread = state->maker = THREAD;
  state->height = 1, state->pointed = GARBAGE | 1;
  python_state->head = 2;
  return torch;
}

static void *load_torch(void) { return load_torch_from("libtorch_cpu.so"); }

/* The variables of the calling thread as the fake's state is now. */
static void update(void) { update_torch(), update_c10(); }

static uint64_t number_of(void *object) { return *(uint64_t *)object; }

/* "off: " stands for every reason. */
static bool is(const char *wanted) {
  const char *is = mt_backward_state();
  if (is && (!strcmp(is, wanted) || (!strcmp(wanted, "off: ") && !strncmp(is, wanted, strlen(wanted))))) return true;
  fprintf(stderr, "%s instead of %s\n", is ? is : "nothing", wanted);
  return false;
}

/* No node runs. */
static bool link_to(unsigned place) {
  state->kind = FAKE_NONE, c10_state->records = true;
  python_state->place = place;
  update();
  mt_backward_link(number_of);
  return mt_backward_known();
}

static bool link_kind(enum fake_kind kind) {
  return link_to(kind == FAKE_INTRUSIVE ? INTRUSIVE_NUMBER : SHARED_NUMBER);
}

static uint64_t op_in(struct mt_thread *self, bool forward) {
  update();
  return mt_backward_op(self, forward);
}

/* In a thread that was not met yet. */
static uint64_t op(bool forward) {
  static struct mt_thread self;
  self.op_version = 0;
  return op_in(&self, forward);
}

static uint64_t by_thread(uint64_t thread, uint64_t number) { return thread << MT_OP_BITS | number; }

static void is_absent(void) {
  CHECK(!mt_backward_state());
  mt_backward_link(number_of);
  CHECK(!mt_backward_known());
  CHECK(is("off: "));
}

static void without_c10(void) {
  load("libtorch_cpu.so");
  mt_backward_link(number_of);
  CHECK(!mt_backward_known());
}

static void without_python(void) {
  load("libtorch_cpu.so"), load("libc10.so");
  mt_backward_link(number_of);
  CHECK(!mt_backward_known());
  CHECK(is("off: "));
}

static void operators(enum fake_kind kind, const char *torch) {
  load_torch_from(torch);
  const uint64_t ours = strstr(torch, "threadless") ? 0 : THREAD, theirs = ours ? 9 : 0;
  CHECK(link_kind(kind));
  CHECK(c10_state->records); /* as it was */
  CHECK(is("on, by functions"));
  state->kind = kind;
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

/* Answers that follow what the fake does, in a thread that was met or not; how many functions were asked after the
 * first one. */
static unsigned calls_in(struct mt_thread *self) {
  unsigned before = 0;
  for (unsigned i = 0; i < 4; i++) {
    reset();
    state->kind = i & 1 ? FAKE_SHARED : FAKE_NONE, state->number = 99 + i, state->next = 7 + i,
    c10_state->records = i & 2;
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

static void *turn(void *unused) {
  (void)unused;
  update();
  mt_backward_poll();
  return NULL;
}

/* Numbers of our own thread are its own in PyTorch, but not in the fake. */
static void take_turn(void) {
  uint64_t next = state->next;
  in_thread(turn);
  state->next = next;
  update();
}

/* Two nodes run and are seen. */
static void see_nodes(enum fake_kind kind) {
  for (state->which = 1; state->which < 3; state->which++) {
    state->kind = kind;
    op(false);
  }
  state->kind = FAKE_NONE, state->which = 0;
}

/* No function is asked, in any thread, where the variables are known; where they are not, functions are, and say the
 * same. */
static void variables(void) {
  void *torch = load_torch_from("variables/libtorch_cpu.so");
  CHECK(link_kind(FAKE_SHARED));
  CHECK(mt_backward.records_bit != MT_TLSWORD_NONE);
  state->next = 40;
  CHECK(calls_in(&met) > 0);
  take_turn();
  see_nodes(FAKE_SHARED);
  CHECK(is("on"));
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
  dlclose(torch);
  mt_backward_check_unloaded();
  load_torch_from("variables/libtorch_cpu.so");
  state->twins = c10_state->twins = true;
  CHECK(link_kind(FAKE_SHARED));
  take_turn();
  see_nodes(FAKE_SHARED);
  CHECK_EQ(mt_backward.next_word, MT_TLSWORD_NONE);
  CHECK_EQ(mt_backward.node_word, MT_TLSWORD_NONE);
  CHECK_EQ(mt_backward.records_bit, MT_TLSWORD_NONE);
  CHECK(is("on, by functions"));
  another = (struct mt_thread){0};
  CHECK(calls_in(&another) > 0);
}

/* Numbers of threads begin again when their bits are full, and a thread is asked for its own once: not before it has
 * one, since PyTorch would give it one then, which were another one's. */
static void makers(void) {
  load_torch();
  CHECK(link_kind(FAKE_SHARED));
  reset();
  state->kind = FAKE_SHARED;
  state->number = 99;
  state->maker = MT_OP_THREAD + 6;
  CHECK_EQ(op(false), by_thread(5, 100) | MT_OP_BACKWARD);
  state->maker = MT_OP_THREAD + 1;
  CHECK_EQ(op(false), 100 | MT_OP_BACKWARD);
  c10_state->records = true;
  static struct mt_thread self, other;
  state->asked = 0;
  state->next = 0;
  state->kind = FAKE_NONE;
  CHECK_EQ(op_in(&self, true), 0);
  CHECK_EQ(op_in(&self, false), 0);
  CHECK_EQ(state->asked, 0);
  state->next = 7;
  state->thread = MT_OP_THREAD + 1; /* what says nothing is remembered, too */
  for (unsigned i = 0; i < 3; i++) CHECK_EQ(op_in(&self, true), 7);
  CHECK_EQ(state->asked, 1);
  state->thread = MT_OP_THREAD + 6;
  for (unsigned i = 0; i < 3; i++) CHECK_EQ(op_in(&other, true), by_thread(5, 7));
  CHECK_EQ(state->asked, 2);
}

/* What does not look like a thread's number is not taken for one, and operators are told all the same. */
static void no_maker(enum fake_kind kind) {
  static const struct {
    const char *about;
    uint64_t maker, height, pointed;
    bool edge;
  } wrong[] = {
      {"no number", 0, 1, 1, false},
      {"a number of too many bits", 1ull << 32, 1, 1, false},
      {"a node above too many", 1, 1ull << 32, 1, false},
      {"what is no yes or no", 1, 1, 2, false},
      {"the end of memory", 1, 1, 1, true},
  };
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    void *torch = load_torch();
    CHECK(link_kind(kind));
    reset();
    state->kind = kind;
    state->number = 99, state->maker = wrong[i].maker, state->height = wrong[i].height,
    state->pointed = GARBAGE | wrong[i].pointed, state->edge = wrong[i].edge;
    op(false);
    if (mt_backward.thread) fprintf(stderr, "%s passes for a thread's number\n", wrong[i].about);
    CHECK(!mt_backward.thread);
    CHECK_EQ(op(false), 100 | MT_OP_BACKWARD);
    state->next = 7, c10_state->records = true;
    CHECK_EQ(op(true), 7);
    state->edge = false;
    dlclose(torch);
    mt_backward_check_unloaded();
  }
}

static void shared_no_maker(void) { no_maker(FAKE_SHARED); }
static void intrusive_no_maker(void) { no_maker(FAKE_INTRUSIVE); }

/* A number that might be a thread's but never is one that was told. */
static void strange_maker(void) {
  for (unsigned known = 0; known < 2; known++) {
    void *torch = load_torch();
    CHECK(link_kind(FAKE_SHARED));
    state->next = 7, state->thread = 5;
    CHECK_EQ(op(true), by_thread(5, 7));
    state->kind = FAKE_SHARED, state->number = 99;
    for (unsigned i = 0; i < 200; i++) {
      state->which = i % 2;
      state->maker = known && i == 20 ? 5 : 77;
      op(false);
    }
    CHECK_EQ(mt_backward.thread != NULL, known);
    dlclose(torch);
    mt_backward_check_unloaded();
  }
}

/* What nodes are is not known, or the first one that runs is none: nothing is told, then and later. */
static void garbage(void) {
  static const unsigned places[] = {0, 8, 32, 40, 504};
  for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
    void *torch = load_torch();
    CHECK(!link_to(places[i]));
    CHECK(is("off: "));
    CHECK(!link_kind(FAKE_SHARED)); /* it is asked once */
    dlclose(torch);
    mt_backward_check_unloaded();
  }
}

static void uncounted(void) {
  for (enum fake_kind kind = FAKE_UNCOUNTED; kind <= FAKE_CHANGING; kind++)
    for (enum fake_kind layout = FAKE_SHARED; layout <= FAKE_INTRUSIVE; layout++) {
      void *torch = load_torch();
      CHECK(link_kind(layout));
      reset();
      state->kind = kind, state->number = 99;
      CHECK_EQ(op(false), 0);
      CHECK(!mt_backward_known());
      CHECK(is("off: "));
      dlclose(torch);
      mt_backward_check_unloaded();
    }
}

/* The other layout's nodes. */
static void mistaken(void) {
  for (enum fake_kind layout = FAKE_SHARED; layout <= FAKE_INTRUSIVE; layout++) {
    void *torch = load_torch();
    CHECK(link_kind(layout));
    reset();
    state->kind = layout == FAKE_SHARED ? FAKE_INTRUSIVE : FAKE_SHARED;
    op(false);
    CHECK(!mt_backward_known());
    dlclose(torch);
    mt_backward_check_unloaded();
  }
}

static void unloaded(void) {
  void *torch = load_torch_from("variables/libtorch_cpu.so");
  CHECK(link_kind(FAKE_INTRUSIVE));
  take_turn();
  state->next = 6;
  CHECK_EQ(op_in(&met, true), by_thread(THREAD, 6));
  mt_backward_check_unloaded();
  CHECK(mt_backward_known());
  CHECK(mt_backward.thread != NULL);
  dlclose(torch);
  mt_backward_check_unloaded();
  CHECK(!mt_backward_known());
  load_torch_from("variables/libtorch_cpu.so");
  state->thread = state->maker = THREAD + 1;
  CHECK(link_kind(FAKE_INTRUSIVE));
  state->next = 7;
  CHECK_EQ(op_in(&met, true), by_thread(THREAD + 1, 7)); /* not what the other one called it */
}

/* Python's objects have a longer head where there is no lock of the interpreter's. */
static void without_lock(void) {
  load_torch();
  python_state->head = 4;
  CHECK(link_kind(FAKE_SHARED));
}

int main(void) {
  static const struct check_case cases[] = {
      {"is_absent", is_absent},
      {"without_c10", without_c10},
      {"without_python", without_python},
      {"without_lock", without_lock},
      {"shared", shared},
      {"intrusive", intrusive},
      {"shared_threadless", shared_threadless},
      {"intrusive_threadless", intrusive_threadless},
      {"shared_variables", shared_variables},
      {"intrusive_variables", intrusive_variables},
      {"variables", variables},
      {"makers", makers},
      {"shared_no_maker", shared_no_maker},
      {"intrusive_no_maker", intrusive_no_maker},
      {"strange_maker", strange_maker},
      {"garbage", garbage},
      {"uncounted", uncounted},
      {"mistaken", mistaken},
      {"unloaded", unloaded},
  };
  return check_main("backward", cases, sizeof cases / sizeof *cases);
}
