/* Adapters: small scripts of ours that run inside the program's interpreter and say what a framework calls its memory.
 * They only read. */
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
extern const char mt_held_script[]; /* cshim/adapters/held.h */
extern const char mt_referrers_script[]; /* cshim/adapters/referrers.h */

extern uint32_t mt_adapters_detected; /* 1 << enum mt_framework */
void mt_adapter_detected(enum mt_framework framework);

/* The framework works with the device: its names may be asked for. Costs a load where that is known. */
static inline void mt_adapter_in_use(enum mt_framework framework) {
  if (MT_UNLIKELY(!(__atomic_load_n(&mt_adapters_detected, __ATOMIC_RELAXED) & 1u << framework)))
    mt_adapter_detected(framework);
}

/* A module was met for the first time in a call of the program's: it may be a framework whose memory comes straight
 * from the driver. */
struct link_map;
void mt_adapter_module_loaded(const struct link_map *map);

/* Memory ran out: names are asked for, though a program without an optimizer may never come to where its script looks
 * by itself. Any thread, in the middle of anything. */
void mt_adapter_out_of_memory(void);

/* Off the hot path, from a thread of ours, at every turn: asks the interpreter to run the scripts that have not run,
 * and those that are due once more. */
void mt_adapter_poll(void);

/* The interpreter is about to end: scripts say all they know, and those that never ran do it now. With the
 * interpreter's lock and no exception in hand. */
void mt_adapter_report_all(void);

/* Nothing is left of the interpreter; another one may follow. */
void mt_adapter_reset(void);

/* By the scripts, with the interpreter's lock. count_failure returns how many there were; schedule has
 * the script called after that time, 0 not. */
uint32_t mt_adapter_count_failure(enum mt_framework framework);
void mt_adapter_schedule(enum mt_framework framework, uint32_t milliseconds);
