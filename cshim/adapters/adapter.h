/* Adapters: small scripts that run inside the program's interpreter and report a framework's names of its memory. They
 * only read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/thread.h"

/* One script, zero-terminated. */
struct mt_adapter_script {
  const char *name; /* of the framework's module in Python */
  const char *text;
};
extern const struct mt_adapter_script mt_adapter_scripts[MT_FRAMEWORKS];
extern const char mt_snapshot_script[]; /* cshim/adapters/snapshot.h */
extern const char mt_referrers_script[]; /* cshim/adapters/referrers.h */

extern uint32_t mt_adapters_detected; /* 1 << enum mt_framework */
void mt_adapter_detected(enum mt_framework framework);

/* The framework uses the device: its script may be run. Costs a load once that is known. */
static inline void mt_adapter_in_use(enum mt_framework framework) {
  if (MT_UNLIKELY(!(__atomic_load_n(&mt_adapters_detected, __ATOMIC_RELAXED) & 1u << framework)))
    mt_adapter_detected(framework);
}

/* A module was discovered: it may be a framework whose memory comes straight from the driver. */
struct link_map;
void mt_adapter_module_loaded(const struct link_map *map);

/* Memory ran out: requests names, since a program without an optimizer may never get to where its script scans by
 * itself. Any thread, in the middle of anything. */
void mt_adapter_out_of_memory(void);

/* Off the hot path, from the polling thread: requests the scripts that have not run, and the reports that are due. */
void mt_adapter_poll(void);

/* The interpreter is about to be finalized: scripts report all names, and those that never ran do so now. With the
 * interpreter's lock and no exception set. */
void mt_adapter_report_all(void);

/* Nothing is left of the interpreter; another one may follow. */
void mt_adapter_reset(void);

/* By the scripts, with the interpreter's lock. count_failure returns how many there were; schedule has
 * the script called after that time, 0 not. */
uint32_t mt_adapter_count_failure(enum mt_framework framework);
void mt_adapter_schedule(enum mt_framework framework, uint32_t milliseconds);
