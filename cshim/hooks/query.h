/* The driver functions that the library itself calls: queries that allocate nothing, use no stream and are legal while
 * a stream is captured. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum mt_query {
  MT_QUERY_CONTEXT, /* int (uint64_t *context): the calling thread's, 0 none */
  MT_QUERY_DEVICE, /* int (int *device): of that context */
  MT_QUERY_PRIMARY_STATE, /* int (int device, unsigned *flags, int *active) */
  MT_QUERY_RANGE, /* int (uint64_t *base, size_t *size, uint64_t address) */
  MT_QUERY_CAPTURING, /* int (void *stream, int *status): 1 while captured */
  MT_QUERY_CAPTURING_PTSZ,
  MT_QUERY_CAPTURE, /* int (void *stream, int *status, uint64_t *id, uint64_t *graph, const void *nodes, size_t *count):
                       all but the first two may be NULL */
  MT_QUERY_CAPTURE_PTSZ,
  MT_QUERY_STREAM_CONTEXT, /* int (void *stream, uint64_t *context) */
  MT_QUERY_POINTER, /* int (void *value, int attribute, uint64_t address) */
  MT_QUERY_POOL, /* int (uint64_t *pool, int device): where cuMemAllocAsync takes from */
  MT_QUERY_POOL_DEFAULT, /* int (uint64_t *pool, int device) */
  MT_QUERY_POOL_VALUE, /* int (uint64_t pool, int attribute, uint64_t *value) */
  MT_QUERY_GRAPH_VALUE, /* int (int device, int attribute, uint64_t *value) */
  MT_QUERY_COUNT
};

/* The function, or NULL where the driver has none. The first time may wait for the loader; errno is kept. */
void *mt_query_find(enum mt_query which);

/* Keeps a function that a route came across. */
void mt_query_set(enum mt_query which, void *function);

/* Whether the function is kept: a runtime requests four hundred functions in a row, and these need be fetched only
 * once. */
bool mt_query_known(enum mt_query which);

/* What cuGetProcAddress calls the function, and the version that has the ABI meant here. */
const char *mt_query_base(enum mt_query which, int *version);

/* Drops what points into unloaded libraries. */
void mt_query_drop_unloaded(void);

/* Each returns the driver's status, or -1 where it has no such function. */
static inline int mt_query_current_context(uint64_t *context) {
  int (*ask)(uint64_t *) = mt_query_find(MT_QUERY_CONTEXT);
  return ask ? ask(context) : -1;
}

static inline int mt_query_current_device(int *device) {
  int (*ask)(int *) = mt_query_find(MT_QUERY_DEVICE);
  return ask ? ask(device) : -1;
}
