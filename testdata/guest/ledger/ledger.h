/* The random ledger: a program that does with memory whatever the hooked functions can, at random, and keeps its own
 * account of it. What its parts share:
 *
 *   book.c     the account, in a file that outlives the program
 *   route.c    how each hooked function is reached: one of several ways, at random
 *   world.c    devices, contexts and streams, and how contexts end
 *   main.c     slots, each with one thing of one kind in it, and the threads that take random steps with them
 *   the rest   one kind of thing each: how it is made, what can be done with it, how it goes
 *
 * A slot is locked while a step is taken with it. Steps share the world, the end of a context has it to itself, and in
 * a serial run every step does: then nothing happens between a call and its line in the book, and peaks are exact. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../cuda.h"
#include "../hooked.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Accounts, named as reports name them, and the places at which each is kept: devices, and memory that is on none. */
enum account { DRIVER, MANAGED, HOST, REGISTERED, FOREIGN, ADDRESS, GRAPH, MULTICAST, ACCOUNTS };
enum { MOST_DEVICES = 3, NOWHERE = MOST_DEVICES, PLACES };

/* A thread that acts: its random numbers and its page of the book. */
struct page;
struct actor {
  uint64_t state;
  struct page *page;
  bool draining; /* nothing new: what is there is to go */
  bool staged;   /* changes wait for the call that makes them */
  uint64_t gains[ACCOUNTS][PLACES], losses[ACCOUNTS][PLACES];
};

uint64_t roll(struct actor *a);
static inline unsigned pick(struct actor *a, unsigned count) { return (unsigned)(roll(a) >> 33) % count; }
static inline bool one_in(struct actor *a, unsigned count) { return pick(a, count) == 0; }
size_t any_size(struct actor *a);

/* The book. What a call is going to change is staged, then the call is made between open and close: a program that is
 * killed meanwhile leaves a page that says both how things were and how they would be. */
void book_start(const char *path, int pages, bool serial);
struct page *book_page(int number);
void book_begin(struct actor *a); /* by the thread itself */
void book_gain(struct actor *a, enum account account, int place, uint64_t bytes);
void book_lose(struct actor *a, enum account account, int place, uint64_t bytes);
void book_refusal(struct actor *a, enum account account, int place);
void book_failed_free(struct actor *a);
void book_open(struct actor *a);
void book_close(struct actor *a);
void book_count(enum hooked id);
int book_show(const char *path);

/* What a slot holds of an account; owner is the context that it ends with. */
enum { HOLDS = 6, NO_CONTEXT = -1 };
struct hold {
  bool live;
  enum account account;
  int place, owner;
  uint64_t bytes;
};

/* One thing and what belongs to it. data is the kind's own. */
struct kind;
struct slot {
  pthread_mutex_t lock;
  const struct kind *kind; /* NULL: empty */
  int context;             /* that it lives in, or NO_CONTEXT */
  struct hold hold[HOLDS];
  char data[512] __attribute__((aligned(16)));
};
#define OWN(type, slot) ((struct type *)(void *)(slot)->data)

/* Stage a change, to be made by the next call. */
void gain(struct actor *a, struct slot *s, int hold, enum account account, int place, uint64_t bytes, int owner);
void lose(struct actor *a, struct slot *s, int hold);

struct kind {
  const char *name;
  unsigned weight;
  void (*make)(struct actor *a, struct slot *s);
  /* Does something with it. True: it is gone. */
  bool (*step)(struct actor *a, struct slot *s);
  /* Its context is going to end: lets go of what would outlive that unseen. May be NULL. */
  void (*leave)(struct actor *a, struct slot *s);
  /* Its context has ended. True, or NULL: nothing of it is left. */
  bool (*orphan)(struct actor *a, struct slot *s);
};
extern const struct kind plain, pinned, registered, streamed, pooled, handled, multicast, arrayed, tiled, graphed,
    captured, module, library, green, external, opened, imported, teamed, shared_block;

/* The function of a row, by one of the ways to it. */
void *route(struct actor *a, enum hooked id);
void route_start(void);
bool route_has(enum hooked id);
int runtime_version(void);
void register_variable(char *variable, size_t size);
enum { EVENT_WITHOUT_TIMES = 2 };
void *runtime_event(void);
void runtime_event_end(void *event);
extern char variable[100];
#define HAS(symbol) route_has(HOOKED_##symbol)

/* Makes a call with what is staged; any other status ends the program, in words. */
void must(const char *what, int status, int wanted);
#define CALL(a, symbol, ...) (((hooked_##symbol *)route(a, HOOKED_##symbol))(__VA_ARGS__))
#define DO(a, symbol, ...) (book_open(a), must(#symbol, CALL(a, symbol, __VA_ARGS__), 0), book_close(a))
#define FAILS(a, wanted, symbol, ...) must(#symbol, CALL(a, symbol, __VA_ARGS__), wanted)
#define HELP(call) must(#call, call, 0)
enum { BY_DESCRIPTOR = 1, BY_FABRIC = 8 };
enum { INVALID = 1, NO_MEMORY = 2 };

/* The world: the contexts of each device, the primary one first. */
enum { EXTRA = 3, STREAMS = 2 };
struct context {
  uint64_t handle; /* 0: there is none now */
  int device;
  bool primary;
  void *stream[STREAMS];
};
extern struct context contexts[];
extern int devices, context_count;
void world_start(struct actor *a, int devices, bool serial, bool ending);
void world_share(void);
void world_leave(void);
/* Perhaps a context ends, with all that it owns, or begins. The world must not be held. */
void world_turn(struct actor *a);
bool world_ends(void);
void world_reset(struct actor *a); /* every primary context */
static inline int primary_of(int device) { return device * (1 + EXTRA); }
bool others_live(int context); /* on the same device */
/* Makes a context current and returns it. */
int enter(struct actor *a, int context);
int enter_any(struct actor *a);
int enter_primary(struct actor *a);
void enter_runtime(int context); /* a primary one, for calls of the runtime */
int device_of(int context);
void *any_stream(struct actor *a, int context);

extern struct slot slots[];
extern int slot_count;

/* The other process, which makes memory to be shared. Calls to it wait for each other. */
struct offer {
  int number; /* by which it is to be let go */
  struct mt_cuda_ipc ipc;
  char block[64]; /* of a pool, or a handle of the fabric */
  int descriptor; /* -1 none; the caller's */
};
enum wish { WISH_DEVICE, WISH_HANDLE, WISH_FABRIC, WISH_TEAM, WISH_POOL, WISH_BLOCK, WISH_END };
void peer_start(const char *book, uint64_t seed, void (*begin)(struct actor *));
struct offer peer_ask(enum wish wish, int device, uint64_t size, int of);
void peer_free(int number);
void peer_stop(void);

extern const struct mt_cuda_pool_props plain_pool;
struct mt_cuda_pool_props pool_on(int device, int handle_types);
void *external_file(size_t size); /* for the two import calls; the calling thread's until the next */
