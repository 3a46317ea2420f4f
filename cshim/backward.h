/* Ties what the backward pass allocates to the forward operators that caused it: PyTorch numbers operators as it records them for autograd, and a node of the graph keeps
 * the number of its operator. Every thread counts its own, so that the thread that recorded an operator is told, too, by the number that PyTorch gave it. Functions that
 * libtorch exports tell both sides; how a node looks inside is found out by a test (adapters/torch/backward.py). So is where the functions' answers lie in a thread's
 * variables: each allocation would find its way through those functions cold in the caches. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "guest.h"
#include "spool.h"
#include "tlsword.h"

/* The owning pointer to a node, as the function returns it: a node and a block with its count, or a node that counts itself. Never in registers. */
struct mt_node_owner {
  void *node, *block, *room;
};

enum mt_node_layout { MT_NODE_UNKNOWN, MT_NODE_SHARED, MT_NODE_INTRUSIVE };

struct mt_backward {
  uint32_t layout;                            /* enum mt_node_layout; stored last */
  uint64_t (*peek)(void);                     /* the number that the thread's next operator gets */
  uint64_t (*thread)(void);                   /* the thread's own number, from 1; NULL if nodes are not known to keep their maker's */
  bool (*records)(void);                      /* whether the thread's operators are recorded for autograd */
  struct mt_node_owner (*current_node)(void); /* the node that runs in the thread; its reference is the caller's */
  struct mt_tlsblock torch, c10;              /* the variables of libtorch and of libc10 */
  uint32_t next_word, node_word, records_bit; /* in those: what peek, current_node and records give; MT_TLSWORD_NONE unknown */
  uint32_t unloads;                           /* how often PyTorch was unloaded: what threads remember is of the one before */
};
extern struct mt_backward mt_backward;

#define MT_OP_NUMBER ((1ull << MT_OP_BITS) - 1)
#define MT_OP_THREAD ((1ull << MT_OP_THREAD_BITS) - 1)

/* The operator whose node runs in the calling thread, as a record has it, with MT_OP_BACKWARD; 0 if that has none, and otherwise, where no node runs. */
uint64_t mt_backward_node(const struct mt_thread *self, uint64_t otherwise);

static inline bool mt_backward_known(void) { return __atomic_load_n(&mt_backward.layout, __ATOMIC_ACQUIRE) != MT_NODE_UNKNOWN; }

/* Fills in what does not change in the calling thread: what its operators have beside their number, and where its variables lie. */
void mt_backward_meet(struct mt_thread *self);

/* Once it is known: the operator that runs in the calling thread, or with MT_OP_BACKWARD the one whose backward runs in it, as a record has it; 0 none. forward: the thread is
 * in Python code. There, a node that has operators recorded runs a part of the forward pass once more, whose operators have numbers of their own. */
static inline uint64_t mt_backward_op(struct mt_thread *self, bool forward) {
  if (MT_UNLIKELY(self->op_met != mt_backward.unloads + 1)) mt_backward_meet(self);
  if (!forward) return mt_backward_node(self, 0);
  uint64_t next = (self->op_next ? *self->op_next : mt_backward.peek()) & MT_OP_NUMBER;
  if (next) next |= self->op_thread;
  bool records = self->op_records ? *self->op_records >> mt_backward.records_bit % 64 & 1 : mt_backward.records();
  return records ? next : mt_backward_node(self, next);
}

/* The test, with the interpreter's lock. begin looks the functions up, where operators are recorded: false if they are not there. look notes what can be seen of the node
 * that runs now, and is called inside two nodes, where they are not. end says what numbers these have: true if the layout is known now. */
bool mt_backward_begin(void);
void mt_backward_look(void);
bool mt_backward_end(uint64_t first, uint64_t second);

/* Once it is known: whether no function has to be asked. */
bool mt_backward_is_quick(void);

/* Objects were unloaded: if PyTorch's was among them, there are no operators any more. */
void mt_backward_forget(void);
