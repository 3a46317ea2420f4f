/* Attributes allocations of the backward pass to the forward operators that caused them: PyTorch numbers operators as
 * it records them for autograd (at::sequence_number, aten/src/ATen/SequenceNumber.h), and a node of the graph keeps its
 * operator's number (torch::autograd::Node::sequence_nr, torch/csrc/autograd/function.h). Numbers are per thread, so
 * the thread's own number (at::RecordFunction::currentThreadId) belongs to an operator, too. Functions that libtorch
 * exports return all of these. Their thread-local variables are located and read directly: the functions' code would be
 * cold in the caches at every allocation.
 *
 * A node's layout is determined without creating a node. An operator that the library ran would be in the program's
 * profiles, consume numbers of the program's operators, and its backward pass would start PyTorch's autograd threads,
 * after which forked children can run none. So the function behind _sequence_nr() of Python's nodes is called on a fake
 * object whose words are all distinct addresses: the word that it reads is the number's, and identifies the layout.
 * Threads' numbers and the reference count are verified with the first nodes that the program runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "elf/tlsword.h"
#include "spool.h"

/* The owning pointer to a node, as the function returns it: a node and a block with its count, or a node that counts
 * itself. Never in registers. */
struct mt_node_owner {
  void *node, *block, *room;
};

enum mt_node_layout { MT_NODE_UNKNOWN, MT_NODE_SHARED, MT_NODE_INTRUSIVE };

struct mt_backward {
  uint32_t layout;                            /* enum mt_node_layout; stored last */
  uint64_t (*peek)(void);                     /* the number that the thread's next operator gets */
  uint64_t (*take)(void);                     /* the same, and the thread's next one gets the next */
  uint64_t (*thread)(void); /* the thread's number, from 1, which the first call assigns; NULL if nodes are not known
                               to keep their creator's */
  bool (*records)(void);                      /* whether the thread's operators are recorded for autograd */
  void (*set_records)(bool);
  struct mt_node_owner (*current_node)(void); /* the node that runs in the thread; its reference is the caller's */
  struct mt_tlsblock torch, c10;              /* the variables of libtorch and of libc10 */
  uint32_t next_word, node_word,
      records_bit; /* in those: what peek, current_node and records give; MT_TLSWORD_NONE unknown */
  uint32_t changes; /* how often any of this became another one: what threads remember is of the one before */
};
extern struct mt_backward mt_backward;

#define MT_OP_NUMBER ((1ull << MT_OP_BITS) - 1)
#define MT_OP_THREAD ((1ull << MT_OP_THREAD_BITS) - 1)

/* The operator whose node runs in the calling thread, as a record has it, with MT_OP_BACKWARD; 0 if that has none, and
 * otherwise, where no node runs. */
uint64_t mt_backward_node(const struct mt_thread *self, uint64_t otherwise);

/* Whether a node runs in the calling thread, which a backward pass waits for then; true where it cannot be told. */
bool mt_backward_runs(struct mt_thread *self);

static inline bool mt_backward_known(void) {
  return __atomic_load_n(&mt_backward.layout, __ATOMIC_ACQUIRE) != MT_NODE_UNKNOWN;
}

/* Fills in what does not change in the calling thread: where its variables lie. */
void mt_backward_bind_thread(struct mt_thread *self);

/* Queries the calling thread's number, once its operators have one: the query itself would assign one, and shift those
 * of other threads. */
uint64_t mt_backward_thread(struct mt_thread *self);

/* Once it is known: the operator that runs in the calling thread, or with MT_OP_BACKWARD the one whose backward runs in
 * it, as a record has it; 0 none. forward: the thread is in Python code. There, a node that has operators recorded runs
 * a part of the forward pass once more, whose operators have numbers of their own. */
static inline uint64_t mt_backward_op(struct mt_thread *self, bool forward) {
  if (MT_UNLIKELY(self->op_version != __atomic_load_n(&mt_backward.changes, __ATOMIC_ACQUIRE) + 1))
    mt_backward_bind_thread(self);
  if (!forward) return mt_backward_node(self, 0);
  uint64_t next = (self->op_next ? *self->op_next : mt_backward.peek()) & MT_OP_NUMBER;
  if (next) next |= MT_LIKELY(self->op_thread_valid) ? self->op_thread : mt_backward_thread(self);
  bool records = self->op_records ? *self->op_records >> mt_backward.records_bit % 64 & 1 : mt_backward.records();
  return records ? next : mt_backward_node(self, next);
}

/* Finds functions and layout, with the interpreter's lock; later calls do nothing. number_of reads a Python int and
 * releases it. */
void mt_backward_link(uint64_t (*number_of)(void *));

/* Finds the word of the next number, which only a library thread can: on one of the program's threads this would
 * consume numbers of its operators. */
void mt_backward_poll(void);

/* "on", "on, by functions" where some must be called, or "off: " and why; NULL: not linked. Recorded as
 * adapter.torch.backward. */
const char *mt_backward_state(void);

/* Objects were unloaded: if PyTorch's was among them, there are no operators any more. */
void mt_backward_check_unloaded(void);
