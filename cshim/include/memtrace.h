/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memtrace.h: name what a program is doing, so that memory reports can say it.
 *
 *     #include "memtrace.h"
 *
 *     MEMTRACE_TAG_PUSH("encoder");
 *     cudaMalloc(&p, n);                    // reported under "encoder"
 *     MEMTRACE_TAG_POP();
 *
 *     { memtrace::tag scope("decoder");     // C++; C has MEMTRACE_TAG_SCOPE("decoder")
 *       cudaMalloc(&q, n); }
 *
 * Nothing has to be linked. The functions are weak: they are there when the program runs under memtrace (preloaded, or
 * started by `memtrace run`) and null when it does not, and the macros, inline functions and classes below then do
 * nothing. A program built with this header runs anywhere. Call the functions directly only after checking that they
 * are not null.
 *
 * Tags
 *   Each thread has its own stack of tags. A new thread starts without tags; nothing is inherited from its creator. The
 * names on the stack, outermost first and joined by '.', make the path that every memory event of the thread carries:
 * encoder -> attention is "encoder.attention". A name may itself contain dots. Names are bytes, UTF-8 by convention, 1
 * to MEMTRACE_NAME_MAX of them, and are copied: the caller may free or overwrite them at once.
 *
 *   Every push, whatever it returned, is undone by exactly one pop. A push that cannot be honoured still counts as a
 * level, one that adds nothing to the path, so a program need not look at the result to stay balanced. A pop on an
 * empty stack does nothing.
 *
 * Pools
 *   A program that takes memory from CUDA in large pieces and cuts them up itself can say so: the report then has its
 * blocks, with who asked for them, as it has PyTorch's.
 *
 *     uint64_t arena = memtrace_pool_create("arena", 0);       // 0 where the program does not run under memtrace
 *     memtrace_pool_alloc(arena, p, n);                        // once the pool has handed p out
 *     memtrace_pool_free(arena, p);                            // before the pool may hand p out again
 *     memtrace_pool_destroy(arena);                            // what is left of its blocks ends with it
 *
 *   Here the macros MEMTRACE_POOL_CREATE, MEMTRACE_POOL_ALLOC, MEMTRACE_POOL_FREE and MEMTRACE_POOL_DESTROY are what a
 * program calls. A byte belongs to one block: where one pool takes its memory from another, only the one that hands
 * blocks to the program says so.
 *
 * Cost
 *   Absent: one load and one branch. Present: a push looks its path up in a table (no lock, and no system call once the
 * path is known); a pop only moves an index. No call allocates with malloc, changes errno, or calls CUDA, and all may
 * be made while holding any lock and from any thread. They are not for signal handlers. Recording starts with the first
 * CUDA call: tags pushed before it count from then on, marks, steps and epochs before it are not recorded.
 *
 * Linking
 *   A weak function is bound at run time in shared objects and in position-independent executables (the default of most
 * compilers), and with GCC also in executables built with -no-pie. Clang on x86-64 with -no-pie binds it to null at
 * link time: compile the file with -fPIC there. A static executable has no dynamic linker, so nothing can be preloaded
 * into it.
 *
 * Define MEMTRACE_NO_API before including this file to compile every use away.
 */
#ifndef MEMTRACE_H
#define MEMTRACE_H

#include <stddef.h>
#include <stdint.h>

/* Longest name in bytes, without the closing zero. */
#define MEMTRACE_NAME_MAX 255
/* Deepest stack of tags. Levels below it count, but add nothing to the path. */
#define MEMTRACE_TAG_DEPTH_MAX 64
/* Longest path in bytes, dots included. A level whose name would make it longer counts, but adds nothing. */
#define MEMTRACE_TAG_PATH_MAX 4096

/* Results of memtrace_tag_push. Anything but MEMTRACE_OK means: the level exists and wants its pop, but the path did
 * not grow. */
#define MEMTRACE_OK 0
#define MEMTRACE_ERR_NAME (-1)  /* name is null, empty or longer than MEMTRACE_NAME_MAX */
#define MEMTRACE_ERR_DEPTH (-2) /* the thread already has MEMTRACE_TAG_DEPTH_MAX levels */
#define MEMTRACE_ERR_FULL \
  (-3) /* the path would exceed MEMTRACE_TAG_PATH_MAX, or the recording has no room left for a new path */

/* Pools that a process has at once. */
#define MEMTRACE_POOLS_MAX 4096
/* Device of a pool of host memory. */
#define MEMTRACE_POOL_HOST (-1)
/* Result of memtrace_pool_alloc and memtrace_pool_free, beside MEMTRACE_OK: there is no such pool. */
#define MEMTRACE_ERR_POOL (-4)

/* Results of memtrace_start, beside MEMTRACE_OK. */
#define MEMTRACE_LATE \
  1 /* it records from now on, but the program used CUDA before: what it allocated then is not known */
#define MEMTRACE_ERR_OFF \
  (-1) /* recording is switched off (MEMTRACE_DISABLE), has stopped, or cannot work with this C library */
#define MEMTRACE_ERR_SYSTEM (-2) /* the system forbids what it takes, for some libraries or all: see standard error */

#if defined(__GNUC__) && !defined(MEMTRACE_NO_API)
#define MEMTRACE_HAVE_API 1
#else
#define MEMTRACE_HAVE_API 0
#endif

#if MEMTRACE_HAVE_API

/* The library that implements the functions defines MEMTRACE_IMPLEMENTATION; then they are ordinary exported functions.
 */
#if defined(MEMTRACE_IMPLEMENTATION)
#define MEMTRACE_API __attribute__((visibility("default")))
#elif defined(__has_attribute)
#if __has_attribute(noplt)
/* noplt keeps the address in the global offset table, where the dynamic linker fills it in. In a -no-pie executable the
 * static linker would otherwise settle it as null. */
#define MEMTRACE_API __attribute__((weak, noplt))
#endif
#endif
#ifndef MEMTRACE_API
#define MEMTRACE_API __attribute__((weak))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Pushes a tag on the calling thread's stack. Returns MEMTRACE_OK or one of MEMTRACE_ERR_*; pop once in either case. */
MEMTRACE_API int memtrace_tag_push(const char *name);

/* Undoes the calling thread's latest push. */
MEMTRACE_API void memtrace_tag_pop(void);

/* Records a named moment, to which `memtrace report --at mark:NAME` refers. A mark with a name that memtrace_tag_push
 * would refuse is not recorded. The same name may be used again. */
MEMTRACE_API void memtrace_mark(const char *name);

/* Says that iteration n of the program's main loop begins. Any numbering will do; one thread should do the counting. */
MEMTRACE_API void memtrace_step(uint64_t n);

/* Says that epoch n begins: the program's own grouping of steps. */
MEMTRACE_API void memtrace_epoch(uint64_t n);

/* Announces a pool of the program's own that hands out memory of a CUDA device, numbered as the process sees it, or of
 * MEMTRACE_POOL_HOST. Pools of the same name are one in reports. Returns its handle, good in any thread and after a
 * fork; 0 if the name is one that memtrace_tag_push would refuse, the process already has MEMTRACE_POOLS_MAX pools, or
 * recording is switched off. */
MEMTRACE_API uint64_t memtrace_pool_create(const char *name, int device);

/* Says that the pool has handed out bytes from ptr on. Null pointers and blocks of 0 bytes are nothing. Returns
 * MEMTRACE_OK, also where nothing is recorded, or MEMTRACE_ERR_POOL. Threads may call it at once. */
MEMTRACE_API int memtrace_pool_alloc(uint64_t pool, const void *ptr, size_t bytes);

/* Says that the block at ptr is given back. Call it before another thread can be handed the same address. */
MEMTRACE_API int memtrace_pool_free(uint64_t pool, const void *ptr);

/* Ends the pool and all of its blocks that are still there: for arenas that are reset as a whole, and at the end. 0 and
 * what is no pool are nothing. */
MEMTRACE_API void memtrace_pool_destroy(uint64_t pool);

/* Returns 1 if memory events are being recorded or will be from the first CUDA call on, 0 if recording is switched off
 * or has stopped. */
MEMTRACE_API int memtrace_active(void);

/* For a program that runs without memtrace and loads libmemtrace.so by itself, with dlopen(path, RTLD_NOW |
 * RTLD_GLOBAL) and dlsym: the library then records as if it had been preloaded, whatever is loaded already or later.
 * Call it before the first CUDA call. Where the library was preloaded it does nothing. Returns MEMTRACE_OK,
 * MEMTRACE_LATE or an error. Thread-safe. */
MEMTRACE_API int memtrace_start(void);

#ifdef __cplusplus
}
#endif

#endif /* MEMTRACE_HAVE_API */

#ifndef MEMTRACE_IMPLEMENTATION

#if MEMTRACE_HAVE_API
#define MEMTRACE_CALL_IF_PRESENT(function, arguments, otherwise) (function ? function arguments : (otherwise))
#define MEMTRACE_UNUSED __attribute__((unused))
#else
#define MEMTRACE_CALL_IF_PRESENT(function, arguments, otherwise) (otherwise)
#define MEMTRACE_UNUSED
#endif

/* The macros call inline functions, so that arguments are evaluated exactly once, with or without the library. */
static inline MEMTRACE_UNUSED int memtrace_tag_push_if(const char *name) {
  (void)name;
  return MEMTRACE_CALL_IF_PRESENT(memtrace_tag_push, (name), MEMTRACE_OK);
}

static inline MEMTRACE_UNUSED void memtrace_tag_pop_if(void) {
  MEMTRACE_CALL_IF_PRESENT(memtrace_tag_pop, (), (void)0);
}

static inline MEMTRACE_UNUSED void memtrace_mark_if(const char *name) {
  (void)name;
  MEMTRACE_CALL_IF_PRESENT(memtrace_mark, (name), (void)0);
}

static inline MEMTRACE_UNUSED void memtrace_step_if(uint64_t n) {
  (void)n;
  MEMTRACE_CALL_IF_PRESENT(memtrace_step, (n), (void)0);
}

static inline MEMTRACE_UNUSED void memtrace_epoch_if(uint64_t n) {
  (void)n;
  MEMTRACE_CALL_IF_PRESENT(memtrace_epoch, (n), (void)0);
}

static inline MEMTRACE_UNUSED uint64_t memtrace_pool_create_if(const char *name, int device) {
  (void)name;
  (void)device;
  return MEMTRACE_CALL_IF_PRESENT(memtrace_pool_create, (name, device), 0);
}

static inline MEMTRACE_UNUSED int memtrace_pool_alloc_if(uint64_t pool, const void *ptr, size_t bytes) {
  (void)pool;
  (void)ptr;
  (void)bytes;
  return MEMTRACE_CALL_IF_PRESENT(memtrace_pool_alloc, (pool, ptr, bytes), MEMTRACE_OK);
}

static inline MEMTRACE_UNUSED int memtrace_pool_free_if(uint64_t pool, const void *ptr) {
  (void)pool;
  (void)ptr;
  return MEMTRACE_CALL_IF_PRESENT(memtrace_pool_free, (pool, ptr), MEMTRACE_OK);
}

static inline MEMTRACE_UNUSED void memtrace_pool_destroy_if(uint64_t pool) {
  (void)pool;
  MEMTRACE_CALL_IF_PRESENT(memtrace_pool_destroy, (pool), (void)0);
}

static inline MEMTRACE_UNUSED int memtrace_active_if(void) {
  return MEMTRACE_CALL_IF_PRESENT(memtrace_active, (), 0);
}

#define MEMTRACE_TAG_PUSH(name) ((void)memtrace_tag_push_if(name))
#define MEMTRACE_TAG_POP() memtrace_tag_pop_if()
#define MEMTRACE_MARK(name) memtrace_mark_if(name)
#define MEMTRACE_STEP(n) memtrace_step_if(n)
#define MEMTRACE_EPOCH(n) memtrace_epoch_if(n)
#define MEMTRACE_POOL_CREATE(name, device) memtrace_pool_create_if(name, device)
#define MEMTRACE_POOL_ALLOC(pool, ptr, bytes) ((void)memtrace_pool_alloc_if(pool, ptr, bytes))
#define MEMTRACE_POOL_FREE(pool, ptr) ((void)memtrace_pool_free_if(pool, ptr))
#define MEMTRACE_POOL_DESTROY(pool) memtrace_pool_destroy_if(pool)
#define MEMTRACE_ACTIVE() memtrace_active_if()

/* MEMTRACE_TAG_SCOPE("name"); pushes a tag that is popped at the end of the enclosing block, however the block is left
 * (longjmp excepted). It declares a variable: use it where a declaration may stand. */
#define MEMTRACE_PASTE2(a, b) a##b
#define MEMTRACE_PASTE(a, b) MEMTRACE_PASTE2(a, b)

#ifdef __cplusplus

namespace memtrace {

/* Holds a tag for the lifetime of the object. Create and destroy it in one thread, in the manner of a lock guard; it
 * can be neither copied nor moved. name is only read by the constructor. */
class tag {
public:
  explicit tag(const char *name) { memtrace_tag_push_if(name); }
  ~tag() { memtrace_tag_pop_if(); }

#if __cplusplus >= 201103L
  tag(const tag &) = delete;
  tag &operator=(const tag &) = delete;
#else
private:
  tag(const tag &);
  tag &operator=(const tag &);
#endif
};

inline void mark(const char *name) { memtrace_mark_if(name); }
inline void step(uint64_t n) { memtrace_step_if(n); }
inline void epoch(uint64_t n) { memtrace_epoch_if(n); }
inline uint64_t pool_create(const char *name, int device) { return memtrace_pool_create_if(name, device); }
inline void pool_alloc(uint64_t pool, const void *ptr, size_t bytes) { memtrace_pool_alloc_if(pool, ptr, bytes); }
inline void pool_free(uint64_t pool, const void *ptr) { memtrace_pool_free_if(pool, ptr); }
inline void pool_destroy(uint64_t pool) { memtrace_pool_destroy_if(pool); }
inline bool active() { return memtrace_active_if() != 0; }

} /* namespace memtrace */

#define MEMTRACE_TAG_SCOPE(name) ::memtrace::tag MEMTRACE_PASTE(memtrace_tag_scope_, __LINE__)(name)

#elif MEMTRACE_HAVE_API

static inline MEMTRACE_UNUSED void memtrace_tag_scope_end(const int *pushed) {
  (void)pushed;
  memtrace_tag_pop_if();
}

#define MEMTRACE_TAG_SCOPE(name) \
  const int MEMTRACE_PASTE(memtrace_tag_scope_, __LINE__) __attribute__((cleanup(memtrace_tag_scope_end), unused)) = \
      memtrace_tag_push_if(name)

#else

#define MEMTRACE_TAG_SCOPE(name)                                                   \
  const int MEMTRACE_PASTE(memtrace_tag_scope_, __LINE__) = ((void)(name), 0); \
  (void)MEMTRACE_PASTE(memtrace_tag_scope_, __LINE__)

#endif

#endif /* MEMTRACE_IMPLEMENTATION */

#endif /* MEMTRACE_H */
