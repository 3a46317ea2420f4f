/* Marks, steps and epochs from before the first CUDA call, when there is no spool yet; the latest ones if there are
 * many. They are recorded when recording starts, with its first timestamp. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MT_EARLY_MAX 64u

/* Adds one of the given kind (MT_MARK with a name, MT_STEP or MT_EPOCH with a number) if recording may still start. */
void mt_early_add(uint8_t kind, uint64_t number, const char *name, size_t size);

/* Passes them to record, the oldest first, once for each start of recording. The name lives until the call returns. */
void mt_early_flush(void (*record)(uint8_t kind, uint64_t number, const char *name, size_t size));
