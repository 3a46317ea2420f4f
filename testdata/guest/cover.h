/* What the parts of cover share: every hooked function by its row of hooks.def, called through the route under test. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hooked.h"

/* The function of a row by the route under test; counted as called. A row that the route does not reach ends the
 * program. */
void *cover_function(enum hooked id);

/* A function of the driver that is not hooked, by its exported name. Integers wider than int must be passed as such. */
int (*cover_helper(const char *name))();
#define H(name) cover_helper(#name)

/* Prints what was called and its status; anything but the wanted status fails the program. */
int cover_status(const char *what, int status, int wanted);
#define FAILS(symbol, wanted, ...) \
  cover_status(#symbol, ((hooked_##symbol *)cover_function(HOOKED_##symbol))(__VA_ARGS__), wanted)
#define DO(symbol, ...) FAILS(symbol, 0, __VA_ARGS__)
#define HELP(symbol, ...) cover_status(#symbol, H(symbol)(__VA_ARGS__), 0)

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Memory that another process shares, received from it before this one starts CUDA's work on it. */
struct cover_offer {
  struct mt_cuda_ipc device[2]; /* 12345 bytes, 3 MiB */
  char block[64];               /* 5000 bytes of the pool */
  int memory, team, pool;       /* descriptors: 4 MiB of cuMemCreate, a multicast object of 2 MiB, the pool */
};
void cover_peer_start(void (*begin)(void));
const struct cover_offer *cover_peer_offer(void);
void cover_peer_end(void);

/* The parts; each begins and ends with the primary context of device 0 current. Some leave memory behind on purpose. */
void cover_plain(void);
void cover_async(void);
void cover_arrays(void);
void cover_external(void);
void cover_handles(void);
void cover_multicast(void);
void cover_tiled(void);
void cover_imports(void);
void cover_graphs(void);
void cover_captures(void);
void cover_code(void);
void cover_contexts(void);
void cover_green(void);
void cover_primary(void);
void cover_runtime(int version);

extern const struct mt_cuda_pool_props cover_pool;       /* pinned memory of device 0 */
extern const struct mt_cuda_pool_props cover_pool_share; /* the same, to be exported by descriptor */
void *
cover_make_external(size_t size); /* a descriptor of another API's memory, for the two import calls; owned by cover */
