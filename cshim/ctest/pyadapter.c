/* The adapters' mechanism as a library that an interpreter loads with ctypes, with a script of the test's own:
 * pyadapter.py looks on. */
#define _GNU_SOURCE
#include <string.h>

#include "adapters/adapter.h"
#include "adapters/pyfreed.h"
#include "adapters/pysearch.h"
#include "adapters/pypaths.h"
#include "process/recorder.h"
#include "pylibrary.h"
#include "python/interpreter.h"
#include "python/python.h"

/* Hands its functions over, and says what is called. */
#define SCRIPT(name) \
  "import sys\n" \
  "mine = sys.modules.setdefault('pyadapter_" name "', type(sys)('pyadapter_" name "'))\n" \
  "vars(mine).update((k, v) for k, v in list(globals().items()) if k[0] != '_')\n" \
  "mine.starts = getattr(mine, 'starts', 0) + 1\n" \
  "mine.reports = 0\n" \
  "mine.prepare()\n" \
  "def report():\n" \
  "    mine.reports += 1\n" \
  "    return mine.reporting()\n" \
  "mine.report = report\n"

const struct mt_adapter_script mt_adapter_scripts[MT_FRAMEWORKS] = {
    {"torch", SCRIPT("torch")}, {"mxnet", SCRIPT("mxnet")}, {"jax", SCRIPT("jax")}};
const char mt_snapshot_script[] = "", mt_referrers_script[] = ""; /* nothing is looked for here */

MT_EXPORT void pyadapter_seen(int framework) { mt_adapter_in_use((enum mt_framework)framework); }
MT_EXPORT void pyadapter_out_of_memory(void) { mt_adapter_out_of_memory(); }

/* ways of cshim/adapters/pypaths.h, with the interpreter's lock. */
MT_EXPORT void *pyadapter_ways(void *arguments) { return mt_pypaths_find() ? mt_pypaths(NULL, arguments) : NULL; }

/* freed of cshim/adapters/pyfreed.h, likewise. */
MT_EXPORT void *pyadapter_freed(void *arguments) { return mt_pysearch_find() ? mt_pyfreed(NULL, arguments) : NULL; }

/* As a thread of ours does. */
MT_EXPORT void pyadapter_turn(void) {
  mt_python_poll();
  mt_adapter_poll();
}

static int nothing(void *unused) {
  (void)unused;
  return 0;
}

/* Turns while the interpreter's list of calls is full: with its lock, so that none of them runs meanwhile. How many it
 * took. */
MT_EXPORT unsigned pyadapter_full(int (*add)(int (*)(void *), void *)) {
  unsigned count = 0;
  while (count < 1u << 20 && !add(nothing, NULL)) count++;
  for (int i = 0; i < 5; i++) pyadapter_turn();
  return count;
}

/* The name number wanted that was written, of a process with few threads: its kind, or 0. */
MT_EXPORT int pyadapter_record(unsigned wanted, struct mt_record *record) {
  unsigned seen = 0;
  const struct mt_spool_header *h = mt_header();
  const char *segments = (const char *)h + h->segments_offset;
  for (unsigned segment = 0; segment < h->segments_used; segment++)
    for (unsigned slot = 1; slot < MT_SEGMENT_SLOTS; slot++) {
      memcpy(record, segments + (uint64_t)segment * MT_SEGMENT_SIZE + slot * sizeof *record, sizeof *record);
      if (record->seq && record->kind == MT_NAME && seen++ == wanted) return record->kind;
    }
  return 0;
}
