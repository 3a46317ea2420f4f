/* The contexts of the process: most memory ends with the context in which it was allocated, and programs do not free
 * what that takes along. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

/* A green context owns nothing: what is allocated while it is current belongs to its device's primary context. */
enum mt_context_kind { MT_CONTEXT_PRIMARY, MT_CONTEXT_CREATED, MT_CONTEXT_GREEN };

/* The calling thread's device, MT_HOST if it has none, and the context that owns what it allocates. A context that is
 * new here is recorded, as noticed in the call api. */
int mt_context_current(struct mt_thread *self, uint16_t api, uintptr_t caller, uint64_t *context);

/* Clears what a forked process inherited: it has no contexts. When recording starts. */
void mt_context_start(void);

/* Adds a context; false if it is known already, or 0. */
bool mt_context_add(uint64_t context, int device, enum mt_context_kind kind);

/* Removes a context; with 0 a device's primary one, or for device -1 all. Handles are reused. */
void mt_context_remove(uint64_t context, int device);

/* The device of a known context, else the given one. */
int mt_context_device(uint64_t context, int otherwise);

/* Devices that the process has used so far, a bit for each: with a single device no query is needed. Bits are never
 * cleared. */
extern uint64_t mt_devices_seen;
static inline void mt_context_note_device(int device) {
  if (device >= 0 && device < 64 && !(__atomic_load_n(&mt_devices_seen, __ATOMIC_RELAXED) >> device & 1))
    __atomic_or_fetch(&mt_devices_seen, 1ull << device, __ATOMIC_RELAXED);
}
static inline bool mt_context_several_devices(void) {
  uint64_t seen = __atomic_load_n(&mt_devices_seen, __ATOMIC_RELAXED);
  return (seen & (seen - 1)) != 0;
}

/* Calls with every device on which a context is known. */
void mt_context_devices(void (*visit)(int device, void *argument), void *argument);
