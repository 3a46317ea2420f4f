/* What a program announces about itself before its first CUDA call, when there is no spool yet: marks, steps and
 * epochs, the latest ones if there are many. They are recorded when recording starts, at its first moment. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MT_EARLY_MAX 64u

/* Keeps a moment of the given kind (MT_MARK with a name, MT_STEP or MT_EPOCH with a number) if recording may still
 * start. */
void mt_early_add(uint8_t kind, uint64_t number, const char *name, size_t size);

/* Hands over what was kept, the oldest first, once for each start of recording. The name lives until the call returns.
 */
void mt_early_flush(void (*record)(uint8_t kind, uint64_t number, const char *name, size_t size));
