/* The contexts of the process: most memory ends with the context in which it was allocated, and programs do not free what that takes along. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "guest.h"

/* The calling thread's device, MT_HOST if it has none, and its context. A context that is new here is recorded, as noticed in the call api. */
int mt_context_here(struct mt_thread *self, uint16_t api, uintptr_t caller, uint64_t *context);

/* Remembers a context, one that the program made or its device's primary one; false if it is known already, or none. */
bool mt_context_add(uint64_t context, int device, bool own);

/* Forgets a context; with 0 a device's primary one, or for device -1 all. Handles are used again. */
void mt_context_drop(uint64_t context, int device);

/* Calls with every device on which a context is known. */
void mt_context_devices(void (*visit)(int device, void *argument), void *argument);
