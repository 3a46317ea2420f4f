/* The oracle of call stacks: a library that stands behind memtrace's in LD_PRELOAD and asks others what the stacks are
 * at the very calls that memtrace records.
 *
 *   LD_PRELOAD="libmemtrace.so oracle.so" ORACLE_LOG=FILE [ORACLE_RATE=0.1] [ORACLE_SEED=1] PROGRAM
 *
 * It sees torch's reports and the runtime's cudaMalloc and cudaFree, as memtrace does, and writes a line for each. For
 * some, drawn at random, the line has what libgcc's _Unwind_Backtrace says of the native stack and what the interpreter
 * says of the Python stack. Fields are separated by tabs:
 *
 *   e THREAD LEVEL KIND ADDRESS SIZE STATE NATIVE PYTHON
 *     LEVEL f (framework) or r (runtime); KIND alloc, free or oom; ADDRESS in hexadecimal
 *     STATE  plain    not drawn: NATIVE and PYTHON are empty
 *            none     the process has no interpreter, or the thread no state in it: PYTHON is empty
 *            held     the thread held the interpreter's lock and was asked itself
 *            asked    it did not, and another thread said what its stack is
 *            skipped  nobody could say in time: PYTHON is unknown
 *            ending   the interpreter is about to end or has: nobody may ask it any more
 *     NATIVE  return addresses in hexadecimal behind the last frame of memtrace's library, innermost first, separated
 *             by commas; the last one is "greenlet" where a greenlet's stack begins, behind which nothing can be known
 *     PYTHON  frames innermost first, separated by RS (0x1e), each of line, name, qualified name (empty before 3.11),
 *             file, separated by US (0x1f)
 *   i START END   the function that runs bytecode, or what its symbol says of it, once
 *
 * Lines are in the order of each thread's calls. A thread waits here for others only for a limited time, so nothing can
 * lock up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORACLE_TEXT (1 << 18) /* bytes of a line */

/* A text that grows in place and never past its end. */
struct oracle_text {
  char *bytes;
  size_t length;
  bool full;
};

__attribute__((format(printf, 2, 3))) void oracle_add(struct oracle_text *text, const char *format, ...);

enum oracle_state { ORACLE_NONE, ORACLE_HELD, ORACLE_ASKED, ORACLE_SKIPPED, ORACLE_ENDING };

/* Adds the calling thread's Python stack. What was added in vain is taken back. */
enum oracle_state oracle_python(struct oracle_text *text);

/* Bounds of the function in which the interpreter runs bytecode; false where there is no interpreter yet. */
bool oracle_python_loop(uintptr_t *start, uintptr_t *end);
