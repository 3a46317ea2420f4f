/* Operators of the backward pass: how a node looks inside is found out, with nodes of both layouts and with what is none. */
#define _GNU_SOURCE
#include "../backward.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "backward_torch.h"
#include "check.h"

static struct fake *state, *c10_state; /* each library has its own */
static uint32_t (*owners)(void);
static void (*reset)(void);

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

static void *load_torch(void) {
  void *torch = load("libtorch_cpu.so"), *c10 = load("libc10.so");
  if (!torch || !c10) _exit(1);
  state = dlsym(torch, "fake");
  c10_state = dlsym(c10, "fake");
  *(void **)&owners = dlsym(torch, "fake_owners");
  *(void **)&reset = dlsym(torch, "fake_reset");
  return torch;
}

static void look(enum fake_kind kind, uint64_t number) {
  reset();
  state->kind = kind;
  state->number = number;
  mt_backward_look();
}

static bool test(enum fake_kind first, uint64_t a, enum fake_kind second, uint64_t b) {
  if (!mt_backward_begin()) return false;
  look(first, a);
  look(second, b);
  return mt_backward_end(41, 40);
}

static void is_absent(void) {
  CHECK(!mt_backward_begin());
  CHECK(!mt_backward_known());
  load("libtorch_cpu.so"); /* without the other one */
  CHECK(!mt_backward_begin());
}

static void operators(enum fake_kind kind) {
  load_torch();
  CHECK(test(kind, 41, kind, 40));
  CHECK(mt_backward_known());
  CHECK_EQ(owners(), 1); /* what was taken was given back */
  state->next = 7;
  state->number = 99;
  for (state->owners = 1; state->owners < 3; state->owners++) {
    reset();
    c10_state->records = true;
    CHECK_EQ(mt_backward_op(true), 7); /* a part of the forward pass that is computed again */
    CHECK_EQ(mt_backward_op(false), 100 | MT_OP_BACKWARD);
    c10_state->records = false;
    CHECK_EQ(mt_backward_op(true), 100 | MT_OP_BACKWARD);
    CHECK_EQ(owners(), state->owners);
  }
  state->number = UINT64_MAX; /* it only sums gradients up */
  CHECK_EQ(mt_backward_op(true), 0);
  CHECK_EQ(mt_backward_op(false), 0);
  state->number = UINT32_MAX - 1; /* numbers are kept in 32 bits */
  CHECK_EQ(mt_backward_op(false), UINT32_MAX | MT_OP_BACKWARD);
  state->kind = FAKE_NONE;
  CHECK_EQ(mt_backward_op(true), 7);
  CHECK_EQ(mt_backward_op(false), 0);
}

static void shared(void) { operators(FAKE_SHARED); }
static void intrusive(void) { operators(FAKE_INTRUSIVE); }

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
  CHECK(mt_backward_begin());
  look(FAKE_SHARED, 41);
  CHECK(!mt_backward_end(41, 40)); /* one look is not enough */
  CHECK(!mt_backward_end(41, 40));
  CHECK(mt_backward_begin());
  look(FAKE_SHARED, 40), look(FAKE_SHARED, 40);
  CHECK(!mt_backward_end(40, 40)); /* nor are two at the same number */
  CHECK(!mt_backward_known());
  CHECK_EQ(mt_backward_known(), false);
  CHECK(test(FAKE_SHARED, 41, FAKE_SHARED, 40)); /* and after all that it is found */
}

static void *look_and_end(void *unused) {
  (void)unused;
  look(FAKE_SHARED, 41), look(FAKE_SHARED, 40);
  CHECK(!mt_backward_end(41, 40));
  return NULL;
}

static void *begin_only(void *unused) {
  (void)unused;
  CHECK(mt_backward_begin());
  return NULL;
}

static void in_thread(void *(*run)(void *)) {
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, run, NULL));
  pthread_join(thread, NULL);
}

/* A test is one thread's. */
static void threads(void) {
  load_torch();
  CHECK(mt_backward_begin());
  in_thread(look_and_end);
  in_thread(begin_only);
  look(FAKE_SHARED, 41), look(FAKE_SHARED, 40);
  CHECK(!mt_backward_end(41, 40));
  CHECK(test(FAKE_SHARED, 41, FAKE_SHARED, 40));
}

static void unloaded(void) {
  void *torch = load_torch();
  CHECK(test(FAKE_INTRUSIVE, 41, FAKE_INTRUSIVE, 40));
  mt_backward_forget();
  CHECK(mt_backward_known());
  dlclose(torch);
  mt_backward_forget();
  CHECK(!mt_backward_known());
}

int main(void) {
  static const struct check_case cases[] = {
      {"is_absent", is_absent}, {"shared", shared}, {"intrusive", intrusive}, {"garbage", garbage}, {"threads", threads}, {"unloaded", unloaded},
  };
  return check_main("backward", cases, sizeof cases / sizeof *cases);
}
