/* Python call stacks of the calling thread, read without the interpreter lock from its own frozen frames. CPython 3.8
 * to 3.15. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/stack.h"
#include "spool.h"

/* Collects the calling thread's frames, innermost first: at most depth (0 to MT_PYTHON_MAX). Returns how many; 0 where
 * the thread has none, no interpreter was found, it is ending, or its layout is unknown. No locks, no calls but the one
 * that finds the thread's own state. The thread is marked (mt_thread_capture_begin) from before the walk until what it
 * found was interned, or it is the one that ends the interpreter. */
unsigned mt_python_walk(struct mt_pyraw *out, unsigned depth, enum mt_stack_end *end);

/* The dictionary id of a walked stack, written at first sight together with the code objects that are new. Lock-free; 0
 * when the dictionary is full (counted). */
uint32_t mt_python_intern(const struct mt_pyraw *frames, unsigned count, enum mt_stack_end end);

struct mt_thread;

/* The dictionary id of the calling thread's Python stack of at most depth frames (1 to MT_PYTHON_MAX), 0 where there is
 * none: as walking and interning it would give, but a stack that is expected is compared instead. Marked as for
 * mt_python_walk. */
uint32_t mt_python_capture(struct mt_thread *self, unsigned depth);

/* The first argument of the calling thread's frame number index, counted from the innermost one, if it runs that code;
 * else 0. Cold. */
uint64_t mt_python_self(uint64_t code, unsigned index);

/* Prepares for a fresh spool: searches the loaded objects for an interpreter, unless one is known, and clears what was
 * written into the last spool. */
void mt_python_start(void);

/* A module was discovered: it may be the interpreter. */
struct link_map;
void mt_python_module_loaded(const struct link_map *map);

/* Objects were unloaded: if the interpreter was among them, Python stacks are disabled. */
void mt_python_check_unloaded(void);

/* Off the hot path, from the polling thread: requests the self-test until it has a result. */
void mt_python_poll(void);
