#define _GNU_SOURCE
#include "backward.h"

#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "module.h"
#include "peek.h"
#include "symbol.h"

/* A shared pointer's block begins with its table of functions, then the owners; a node that counts itself begins so, too. The number follows in places that differ. */
#define MT_NODE_COUNT 8u
#define MT_NODE_NUMBER_SHARED 24u
#define MT_NODE_NUMBER_INTRUSIVE 16u

struct mt_backward mt_backward;

/* What was seen of the two nodes, by the one thread that makes the test: another that begins takes it over. */
static struct sight {
  enum mt_node_layout layout;
  uint64_t number;
} sights[2];
static unsigned seen;
static pid_t tester;

static bool is_tester(void) { return __atomic_load_n(&tester, __ATOMIC_ACQUIRE) == (pid_t)syscall(SYS_gettid); }

/* A loaded object by the name of its file. */
struct wanted {
  const char *file;
  struct mt_loaded found;
};

static int match(struct dl_phdr_info *info, size_t size, void *what) {
  (void)size;
  struct wanted *wanted = what;
  const char *slash = strrchr(info->dlpi_name, '/');
  if (!slash || strcmp(slash + 1, wanted->file)) return 0;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) wanted->found = (struct mt_loaded){info->dlpi_addr, (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr)};
  return 1;
}

static uintptr_t find(const char *file, const char *symbol) {
  struct wanted wanted = {file, {0}};
  return dl_iterate_phdr(match, &wanted) && wanted.found.dynamic ? mt_symbol_find(&wanted.found, symbol) : 0;
}

/* Once the layout is known the functions are in use, and stay. */
bool mt_backward_begin(void) {
  __atomic_store_n(&tester, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
  seen = 0;
  if (mt_backward_known()) return true;
  mt_backward.peek = (uint64_t(*)(void))find("libtorch_cpu.so", "_ZN2at15sequence_number4peekEv");
  mt_backward.current_node = (struct mt_node_owner(*)(void))find("libtorch_cpu.so", "_ZN5torch8autograd16get_current_nodeEv");
  mt_backward.records = (bool (*)(void))find("libc10.so", "_ZN3c108GradMode10is_enabledEv");
  return mt_backward.peek && mt_backward.current_node && mt_backward.records;
}

static uint32_t *count_of(const struct mt_node_owner *owner, enum mt_node_layout layout) {
  return (uint32_t *)((char *)(layout == MT_NODE_SHARED ? owner->block : owner->node) + MT_NODE_COUNT);
}

static void give_back(const struct mt_node_owner *owner, enum mt_node_layout layout) {
  __atomic_fetch_sub(count_of(owner, layout), 1, __ATOMIC_ACQ_REL); /* never the last one: the engine holds the node while it runs */
}

/* The count that a reference taken in between raised by one tells the layout. In the one that takes a word less the owner's block is whatever was there before. */
static enum mt_node_layout layout_of(const struct mt_node_owner *first) {
  uint32_t before[3] = {0}, after;
  for (enum mt_node_layout l = MT_NODE_SHARED; l <= MT_NODE_INTRUSIVE; l++)
    if (!mt_peek(&before[l], (uintptr_t)count_of(first, l), sizeof before[l])) before[l] = 0;
  struct mt_node_owner second = mt_backward.current_node();
  for (enum mt_node_layout l = MT_NODE_SHARED; second.node == first->node && l <= MT_NODE_INTRUSIVE; l++)
    if (before[l] && mt_peek(&after, (uintptr_t)count_of(first, l), sizeof after) && after == before[l] + 1) return give_back(&second, l), l;
  return MT_NODE_UNKNOWN;
}

/* Where the layout stays unknown nothing can be given back, and our own nodes live on. */
void mt_backward_look(void) {
  if (seen == 2 || !is_tester()) return;
  struct sight *sight = &sights[seen++];
  struct mt_node_owner owner = mt_backward.current_node();
  *sight = (struct sight){owner.node ? layout_of(&owner) : MT_NODE_UNKNOWN, 0};
  if (sight->layout == MT_NODE_UNKNOWN) return;
  uintptr_t number = (uintptr_t)owner.node + (sight->layout == MT_NODE_SHARED ? MT_NODE_NUMBER_SHARED : MT_NODE_NUMBER_INTRUSIVE);
  if (!mt_peek(&sight->number, number, sizeof sight->number)) sight->layout = MT_NODE_UNKNOWN;
  else give_back(&owner, sight->layout);
}

bool mt_backward_end(uint64_t first, uint64_t second) {
  bool right = is_tester() && seen == 2 && sights[0].layout != MT_NODE_UNKNOWN && sights[0].layout == sights[1].layout && first != second && sights[0].number == first && sights[1].number == second;
  seen = 0;
  if (right) __atomic_store_n(&mt_backward.layout, sights[0].layout, __ATOMIC_RELEASE);
  return right;
}

void mt_backward_forget(void) {
  if (mt_backward_known() && mt_module_find((uintptr_t)mt_backward_forget) && !mt_module_find((uintptr_t)mt_backward.peek))
    __atomic_store_n(&mt_backward.layout, MT_NODE_UNKNOWN, __ATOMIC_RELEASE);
}

uint64_t mt_backward_node(uint64_t otherwise) {
  struct mt_node_owner owner = mt_backward.current_node();
  if (!owner.node) return otherwise;
  enum mt_node_layout layout = mt_backward.layout;
  uint64_t number = *(const uint64_t *)((const char *)owner.node + (layout == MT_NODE_SHARED ? MT_NODE_NUMBER_SHARED : MT_NODE_NUMBER_INTRUSIVE));
  give_back(&owner, layout);
  uint32_t op = (uint32_t)number + 1;
  return op ? op | MT_OP_BACKWARD : 0; /* one that only sums gradients up has no number: its bits are all set */
}
