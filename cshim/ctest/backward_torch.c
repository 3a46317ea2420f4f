/* What the test of cshim/backward.c takes for PyTorch's libraries: the functions by their mangled names, with nodes of either layout or of none. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backward_torch.h"

struct owner {
  void *node, *block, *room;
};

struct fake fake;

/* A shared pointer's block, and a node of which it counts the owners; or one that counts itself. */
static struct {
  uint64_t table;
  uint32_t owners, observers;
} block;
static struct {
  uint64_t table;
  uint32_t owners, observers;
  uint64_t number_intrusive, number_shared;
} node;

uint32_t fake_owners(void) { return fake.kind == FAKE_INTRUSIVE ? node.owners : block.owners; }

static void prepare(void) {
  node.table = block.table = 0x7f0000001000;
  node.number_shared = fake.kind == FAKE_SHARED ? fake.number : 0xabad1dea;
  node.number_intrusive = fake.kind == FAKE_INTRUSIVE ? fake.number : 0xabad1dea;
  if (!block.owners) block.owners = node.owners = fake.owners ? fake.owners : 1;
}

void fake_reset(void) { block.owners = node.owners = 0; }

struct owner _ZN5torch8autograd16get_current_nodeEv(void) {
  prepare();
  switch (fake.kind) {
    case FAKE_NONE: return (struct owner){NULL, NULL, NULL};
    case FAKE_SHARED: block.owners++; return (struct owner){&node, &block, NULL};
    case FAKE_INTRUSIVE: node.owners++; return (struct owner){&node, (void *)0x7f12345678, NULL}; /* it fills one word only */
    case FAKE_UNCOUNTED: return (struct owner){&node, &block, NULL};
    case FAKE_TWICE: block.owners += 2, node.owners += 2; return (struct owner){&node, &block, NULL};
    case FAKE_WILD: return (struct owner){(void *)0x10, (void *)0x20, NULL};
    case FAKE_CHANGING: block.owners++; return (struct owner){(char *)&node + 8 * (block.owners & 1), &block, NULL};
  }
  return (struct owner){NULL, NULL, NULL};
}

uint64_t _ZN2at15sequence_number4peekEv(void) { return fake.next; }
bool _ZN3c108GradMode10is_enabledEv(void) { return fake.records; }
