/* Blocks that the program freed and that torch's allocator may not reuse yet: other streams used them (record_stream),
 * and for each of those an event is recorded when the block is freed. torch does not report that. Its functions
 * insert_events and process_events (c10/cuda/CUDACachingAllocator.cpp) are found by name, and the events that they
 * record and query are the ones that are waited for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/object.h"
#include "base/thread.h"

/* The code that records the events of a block that is freed, and the code that finds them complete. */
void mt_waiting_watch(struct mt_range records, const struct mt_range completes[2]);

/* The calling thread is about to report a block of torch's: records what a freed one waits for. */
void mt_waiting_record(struct mt_thread *self, uint8_t kind, uint64_t address, uint64_t size, int device);
