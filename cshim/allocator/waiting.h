/* Blocks that the program gave back and that torch's allocator may not lend again yet: other streams used them
 * (record_stream), and each of those gets an event when the block is freed. torch says nothing of that. Its own
 * functions are known by name, and what they record and ask about is what is waited for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/object.h"
#include "base/thread.h"

/* The code that records the events of a block that is freed, and the code that finds them complete. */
void mt_waiting_watch(struct mt_range records, const struct mt_range completes[2]);

/* The calling thread is about to report a block of torch's: of a freed one, what it waits for is told. */
void mt_waiting_record(struct mt_thread *self, uint8_t kind, uint64_t address, uint64_t size, int device);
