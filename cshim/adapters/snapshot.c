#define _GNU_SOURCE
/* A snapshot of an allocator that other threads go on using. Python threads wait while the script has the interpreter's
 * lock, but a backward pass runs without it. So a snapshot counts only if no event bypassed the recorder meanwhile; the
 * next try is a fraction of a millisecond later, and after some of them the program gets its interpreter back for a
 * while. */
#include "adapters/snapshot.h"

#include <errno.h>
#include <string.h>

#include "adapters/adapter.h"
#include "adapters/pyquiet.h"
#include "adapters/pyscript.h"
#include "adapters/torch.h"
#include "allocator/place.h"
#include "base/clock.h"
#include "base/sys.h"
#include "python/pyapi.h"

#define MT_ROUNDS 200u
#define MT_ROUND_NS 20000000u /* between two rounds */
#define MT_TRIES 8u           /* in a round, */
#define MT_KEEP_NS 10000000u  /* and none that begins later: those of a large program take milliseconds */

#define API(F)                                                              \
  F(int, initialized, (void), "Py_IsInitialized")                           \
  F(int, ensure, (void), "PyGILState_Ensure")                               \
  F(void, release, (int), "PyGILState_Release")                             \
  F(void *, item, (void *, intptr_t), "PyTuple_GetItem") /* borrowed */     \
  F(int, bytes, (void *, char **, intptr_t *), "PyBytes_AsStringAndSize")   \
  F(void *, number, (unsigned long long), "PyLong_FromUnsignedLongLong")    \
  F(unsigned long long, from_number, (void *), "PyLong_AsUnsignedLongLong") \
  F(void, clear_error, (void), "PyErr_Clear")                               \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;

/* As the script packs it. */
struct row {
  uint64_t is_block, device, address, size, requested, allocated, reserved, stream, pool[2];
};

/* One recording begins at a time. */
static uint64_t bytes, longest_pause, round_began;
static bool reported, done, last_round;
static void (*on_recorded)(void);

static void record(const struct row *row) {
  int device = (int)row->device;
  if (!row->is_block) return mt_torch_record_segment(row->address, row->size, device);
  mt_torch_record_block(&(struct mt_torch_block){row->address, row->size, row->requested, row->allocated, row->reserved,
                                                 row->stream, mt_place_pool(row->pool[0], row->pool[1]), device});
  bytes += row->size;
}

/* bypassed() -> int: how many events have bypassed the recorder. */
static void *bypassed(void *self, void *unused) {
  (void)self, (void)unused;
  return api.number(mt_bypass_count());
}

/* record_snapshot(count, bytes) -> int: records the rows, unless more events bypassed since that count. True to stop:
 * it did, or the program is to have its interpreter back. */
static void *record_snapshot(void *self, void *arguments) {
  (void)self;
  int error = errno;
  char *rows;
  intptr_t size;
  void *number = api.item(arguments, 0), *packed = number ? api.item(arguments, 1) : NULL;
  if (packed && !api.bytes(packed, &rows, &size)) {
    reported = true;
    done = mt_bypass_end_unless_passed(api.from_number(number));
    if (!done && last_round) mt_bypass_end(), done = true; /* the last round: an inexact snapshot is better than none */
    struct row row;
    for (intptr_t at = 0; done && at + (intptr_t)sizeof row <= size; at += (intptr_t)sizeof row) {
      memcpy(&row, rows + at, sizeof row);
      record(&row);
    }
    if (done) on_recorded();
  }
  api.clear_error();
  errno = error;
  return api.number(done || mt_clock_monotonic() - round_began > MT_KEEP_NS);
}

static void run_script(void) {
  static struct mt_pymethod methods[2];
  methods[0] = (struct mt_pymethod){"bypassed", bypassed, MT_PY_NO_ARGUMENTS, NULL};
  methods[1] = (struct mt_pymethod){"record_snapshot", record_snapshot, MT_PY_SEVERAL_ARGUMENTS, NULL};
  void *globals = mt_pyscript_namespace();
  if (!globals) return;
  if (mt_pyscript_add_function(globals, &methods[0], NULL) && mt_pyscript_add_function(globals, &methods[1], NULL) &&
      mt_pyscript_add_number(globals, "TRIES", MT_TRIES))
    mt_pyscript_run(globals, mt_snapshot_script);
  api.decref(globals);
}

/* False: events passed during each of its tries, and another round may do better. */
static bool run_round(void) {
  struct mt_quiet quiet;
  reported = false;
  if (!api.initialized() || mt_interpreter.finalizing()) return true;
  int state = api.ensure();
  round_began = mt_clock_monotonic();
  if (mt_pyquiet_enter(&quiet)) {
    run_script();
    mt_pyquiet_leave(&quiet);
  }
  uint64_t now = mt_clock_monotonic();
  if (now - round_began > longest_pause) longest_pause = now - round_began;
  api.release(state);
  return done || !reported;
}

uint64_t mt_snapshot_paused_ns(void) { return longest_pause; }

uint64_t mt_snapshot_record(void (*recorded)(void)) {
  bytes = 0, done = last_round = false, on_recorded = recorded;
  if (mt_interpreter_state() >= MT_PY_CHECKED && mt_pyapi_find(MT_PYAPI_NAMES(API), &api) && mt_pyscript_find() &&
      mt_pyquiet_find())
    for (unsigned round = 1; !run_round() && round < MT_ROUNDS; round++) {
      last_round = round + 1 == MT_ROUNDS;
      mt_sys_sleep(MT_ROUND_NS);
    }
  mt_bypass_end();
  return bytes;
}
