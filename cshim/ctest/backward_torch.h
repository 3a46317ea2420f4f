/* What the fake PyTorch of the backward test does: shared by both. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum fake_kind { FAKE_NONE, FAKE_SHARED, FAKE_INTRUSIVE, FAKE_UNCOUNTED, FAKE_TWICE, FAKE_WILD, FAKE_CHANGING };
enum { FAKE_NODES = 4 };

extern struct fake {
  enum fake_kind kind; /* of the node that runs */
  unsigned which;      /* of the nodes */
  uint32_t owners;     /* that it has at first, 1 if 0 */
  uint64_t number, height, pointed, maker; /* what the node keeps */
  bool edge;                               /* behind its number, no memory can be read */
  uint64_t next;
  uint64_t thread; /* the calling one's number */
  unsigned asked;  /* how often it was asked for */
  bool records;
  unsigned calls;    /* of the functions whose answers lie in variables */
  bool stale, twins; /* fake_update: leaves the variables as they are; has each of them twice */
  unsigned head;     /* of Python's nodes: the word behind their head */
  unsigned place;    /* where their method looks for a node's number */
} fake;

uint32_t fake_owners(void);
void fake_reset(void);
void fake_update(void); /* the calling thread's variables, in a library that has some */
