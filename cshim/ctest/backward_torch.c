/* What the test of cshim/adapters/backward.c takes for PyTorch's libraries: the functions by their mangled names, with
 * nodes of either layout or of none. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

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
struct node {
  uint64_t table;
  uint32_t owners, observers;
  uint64_t words[5];
};
static struct node usual[FAKE_NODES], *node = usual;

#define PAGE 4096

/* A node of which memory ends behind its first words. */
static struct node *at_edge(size_t words) {
  static char *pages;
  if (!pages) {
    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
  }
  return (struct node *)(pages + PAGE - offsetof(struct node, words) - words * sizeof(uint64_t));
}

uint32_t fake_owners(void) { return fake.kind == FAKE_INTRUSIVE ? node->owners : block.owners; }

static void prepare(void) {
  size_t before = fake.kind == FAKE_INTRUSIVE ? 0 : 1; /* words that the other layout does not have */
  const uint64_t words[5] = {0xabad1dea, 0xabad1dea, 0xabad1dea, 0xabad1dea, 0xabad1dea},
                 kept[4] = {fake.number, fake.height, fake.pointed, fake.maker};
  size_t known = fake.edge ? 1 : 4;
  node = fake.edge ? at_edge(before + known) : &usual[fake.which];
  node->table = block.table = 0x7f0000001000;
  memcpy(node->words, words, (before + known) * sizeof *words);
  if (fake.kind == FAKE_SHARED || fake.kind == FAKE_INTRUSIVE) memcpy(node->words + before, kept, known * sizeof *kept);
  if (!block.owners) block.owners = node->owners = fake.owners ? fake.owners : 1;
}

void fake_reset(void) {
  block.owners = 0;
  for (unsigned i = 0; i < FAKE_NODES; i++) usual[i].owners = 0;
}

/* A block in which most words change: to what the variables were before, to zero, or to nothing that they hold. */
void fake_update(void) {
#ifdef FAKE_VARIABLES
  static __thread struct {
    uint64_t early[20], next, middle[20], node, late[20], pointer, flags, constant, twins[3];
  } variables;
  if (fake.stale) return;
  prepare();
  uint64_t next = fake.next, current = fake.kind == FAKE_NONE ? 0 : (uintptr_t)node,
           flags = fake.records ? 0xa0f0 : 0xa0e0;
  memcpy(variables.middle, variables.early, sizeof variables.middle);
  for (unsigned i = 0; i < 20; i++)
    variables.early[i] = i % 2 ? variables.next : variables.node,
    variables.late[i] = i % 2 ? next + i : current + i + 1;
  variables.next = next, variables.node = current, variables.flags = flags;
  variables.pointer = fake.records             ? 0x7f0123456780
                      : fake.kind == FAKE_NONE ? 0
                                               : 0x7f0000000010,
  variables.constant = 0xa0f0;
  if (fake.twins) variables.twins[0] = next, variables.twins[1] = current, variables.twins[2] = flags;
#endif
}

struct owner _ZN5torch8autograd16get_current_nodeEv(void) {
  fake.calls++;
  prepare();
  switch (fake.kind) {
    case FAKE_NONE: return (struct owner){NULL, NULL, NULL};
    case FAKE_SHARED: block.owners++; return (struct owner){node, &block, NULL};
    case FAKE_INTRUSIVE:
      node->owners++;
      return (struct owner){node, (void *)0x7f12345678, NULL}; /* it fills one word only */
    case FAKE_UNCOUNTED: return (struct owner){node, &block, NULL};
    case FAKE_TWICE: block.owners += 2, node->owners += 2; return (struct owner){node, &block, NULL};
    case FAKE_WILD: return (struct owner){(void *)0x10, (void *)0x20, NULL};
    case FAKE_CHANGING: block.owners++; return (struct owner){(char *)node + 8 * (block.owners & 1), &block, NULL};
  }
  return (struct owner){NULL, NULL, NULL};
}

#ifndef FAKE_THREADLESS
uint64_t _ZN2at14RecordFunction15currentThreadIdEv(void) { return fake.asked++, fake.thread; }
#endif
uint64_t _ZN2at15sequence_number4peekEv(void) { return fake.calls++, fake.next; }
uint64_t _ZN2at15sequence_number17get_and_incrementEv(void) {
  uint64_t number = fake.next++;
  fake_update();
  return number;
}
bool _ZN3c108GradMode10is_enabledEv(void) { return fake.calls++, fake.records; }
void _ZN3c108GradMode11set_enabledEb(bool records) {
  fake.records = records;
  fake_update();
}

void *_ZN5torch8autograd26THPCppFunction_sequence_nrEP7_objectS2_(void *self, void *none) {
  static uint64_t number;
  (void)none;
  memcpy(&number, ((char **)self)[fake.head] + fake.place, sizeof number);
  return &number;
}
