#define _GNU_SOURCE
#include "adapters/backward.h"

#include <link.h>
#include <string.h>

#include "base/saferead.h"
#include "base/sys.h"
#include "elf/symbol.h"
#include "spool/dict.h"
#include "spool/module.h"

/* A std::shared_ptr's control block begins with its vtable, then the use count; an intrusively counted node begins
 * likewise. sequence_nr_ follows at an offset that differs, then topological_nr_, has_parent_ and thread_id_
 * (torch::autograd::Node, torch/csrc/autograd/function.h). */
#define MT_NODE_COUNT 8u
#define MT_NODE_NUMBER_SHARED 24u
#define MT_NODE_NUMBER_INTRUSIVE 16u

enum { NUMBER, HEIGHT, POINTED, THREAD, WORDS };

#define MT_NODE_COUNT_TRIES 4u /* another thread may take or drop a reference between two reads of the count */
#define MT_NODE_SAMPLES 64u      /* of running nodes; what they do not reveal stays unknown */

struct mt_backward mt_backward;

static const char *off; /* why */
static bool linked, counted;
static uint32_t count_verified; /* the reference count of a node is where the layout has it */

/* Calibration by the first nodes that run, one thread at a time. */
static struct {
  uint32_t busy, over;
  unsigned samples;
  uintptr_t last;
  struct mt_tlsword search;
} calibration;

static uint64_t first_known, last_known; /* threads' numbers */

/* The variables of a loaded object. */
struct variables {
  const char *file;
  struct mt_tlsblock found;
};

static int match(struct dl_phdr_info *info, size_t size, void *what) {
  struct variables *variables = what;
  const char *slash = strrchr(info->dlpi_name, '/');
  if (!slash || strcmp(slash + 1, variables->file)) return 0;
  variables->found = mt_tlsblock_of(info, size);
  return 1;
}

static struct mt_tlsblock variables_of(const char *file) {
  struct variables variables = {.file = file};
  dl_iterate_phdr(match, &variables);
  return variables.found;
}

static bool find_functions(void) {
  struct mt_loaded torch = mt_symbol_object("libtorch_cpu.so"), c10 = mt_symbol_object("libc10.so");
  mt_backward.peek = (uint64_t(*)(void))mt_symbol_find(&torch, "_ZN2at15sequence_number4peekEv");
  mt_backward.take = (uint64_t(*)(void))mt_symbol_find(&torch, "_ZN2at15sequence_number17get_and_incrementEv");
  mt_backward.current_node =
      (struct mt_node_owner(*)(void))mt_symbol_find(&torch, "_ZN5torch8autograd16get_current_nodeEv");
  mt_backward.thread = (uint64_t(*)(void))mt_symbol_find(&torch, "_ZN2at14RecordFunction15currentThreadIdEv");
  mt_backward.records = (bool (*)(void))mt_symbol_find(&c10, "_ZN3c108GradMode10is_enabledEv");
  mt_backward.set_records = (void (*)(bool))mt_symbol_find(&c10, "_ZN3c108GradMode11set_enabledEb");
  if (!mt_backward.peek || !mt_backward.current_node || !mt_backward.records) return false;
  mt_backward.peek(), mt_backward.records(); /* the blocks are there now */
  mt_backward.torch = variables_of("libtorch_cpu.so");
  mt_backward.c10 = variables_of("libc10.so");
  return true;
}

/* The flag is set and cleared and put back before the thread does anything else. */
static uint32_t find_records(void) {
  struct mt_tlsbit search = {0};
  bool before = mt_backward.records();
  for (unsigned i = 0; mt_backward.set_records && i < 4; i++) {
    mt_backward.set_records(i & 1);
    if (mt_backward.records() == (i & 1)) mt_tlsbit_narrow(&search, &mt_backward.c10, i & 1);
  }
  if (mt_backward.set_records) mt_backward.set_records(before);
  return mt_tlsbit_found(&search, &mt_backward.c10);
}

/* Every word of it is the address of one of its own, so that whichever are followed, and how often, none leads
 * elsewhere. */
enum { MARKS = 64 };
static uint64_t probe_words[MARKS];

/* Where Python's method finds a node's number: in an object that refers to it wherever an object may. */
static unsigned find_number_word(uint64_t (*number_of)(void *)) {
  struct mt_loaded python = mt_symbol_object("libtorch_python.so");
  void *(*sequence_nr)(void *, void *) =
      (void *(*)(void *, void *))mt_symbol_find(&python, "_ZN5torch8autograd26THPCppFunction_sequence_nrEP7_objectS2_");
  uint64_t object[16];
  for (unsigned i = 0; i < 16; i++) object[i] = (uintptr_t)probe_words;
  for (unsigned i = 0; i < MARKS; i++) probe_words[i] = (uintptr_t)(probe_words + i);
  void *number = sequence_nr ? sequence_nr(object, NULL) : NULL;
  uint64_t word = number ? number_of(number) - (uintptr_t)probe_words : UINT64_MAX;
  return word < sizeof probe_words ? (unsigned)word : 0;
}

static enum mt_node_layout layout_of(unsigned word) {
  return word == MT_NODE_NUMBER_SHARED      ? MT_NODE_SHARED
         : word == MT_NODE_NUMBER_INTRUSIVE ? MT_NODE_INTRUSIVE
                                            : MT_NODE_UNKNOWN;
}

static bool reads_thread_locals(void) {
  return mt_backward.next_word != MT_TLSWORD_NONE && mt_backward.node_word != MT_TLSWORD_NONE &&
         mt_backward.records_bit != MT_TLSWORD_NONE;
}

const char *mt_backward_state(void) {
  return mt_backward_known() ? reads_thread_locals() ? "on" : "on, by functions" : off;
}

static void note_state(void) {
  static const char *noted;
  static uint64_t noted_in;
  const char *state = mt_backward_state();
  uint64_t epoch = __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE);
  if (!state || !epoch || (state == noted && epoch == noted_in)) return;
  mt_dict_info("adapter.torch.backward", state, strlen(state));
  noted = state, noted_in = epoch;
}

static void change(void) { __atomic_add_fetch(&mt_backward.changes, 1, __ATOMIC_RELEASE); }

static void link_nodes(uint64_t (*number_of)(void *)) {
  enum mt_node_layout layout = find_functions() ? layout_of(find_number_word(number_of)) : MT_NODE_UNKNOWN;
  off = mt_backward.current_node ? "off: this version keeps its nodes' numbers in a place that is not known"
                                 : "off: this version does not export what tells which node runs";
  if (layout == MT_NODE_UNKNOWN) return;
  mt_backward.next_word = mt_backward.node_word = MT_TLSWORD_NONE;
  mt_backward.records_bit = find_records();
  memset(&calibration, 0, sizeof calibration);
  count_verified = counted = 0;
  __atomic_store_n(&mt_backward.layout, layout, __ATOMIC_RELEASE);
  change();
}

void mt_backward_link(uint64_t (*number_of)(void *)) {
  if (!linked) link_nodes(number_of);
  linked = true;
  note_state();
}

void mt_backward_poll(void) {
  if (mt_backward_known() && !counted && mt_backward.take) {
    struct mt_tlsword search = {{0}};
    for (unsigned i = 0; i < 8; i++) {
      mt_tlsword_narrow(&search, &mt_backward.torch, mt_backward.peek());
      mt_backward.take();
    }
    counted = true;
    mt_backward.next_word = mt_tlsword_found(&search, &mt_backward.torch);
    change();
  }
  if (linked) note_state();
}

void mt_backward_check_unloaded(void) {
  if (!linked || !mt_backward.peek || !mt_module_find((uintptr_t)mt_backward_check_unloaded) ||
      mt_module_find((uintptr_t)mt_backward.peek))
    return;
  __atomic_store_n(&mt_backward.layout, MT_NODE_UNKNOWN, __ATOMIC_RELEASE);
  linked = false;
  change();
}

/* Disables the use of nodes for good. */
static void disable(const char *why) {
  off = why;
  __atomic_store_n(&mt_backward.layout, MT_NODE_UNKNOWN, __ATOMIC_RELEASE);
  change();
}

static uint32_t *count_of(const struct mt_node_owner *owner, enum mt_node_layout layout) {
  return (uint32_t *)((char *)(layout == MT_NODE_SHARED ? owner->block : owner->node) + MT_NODE_COUNT);
}

static void drop_references(const struct mt_node_owner *owner, enum mt_node_layout layout) {
  __atomic_fetch_sub(count_of(owner, layout), 1,
                     __ATOMIC_ACQ_REL); /* never the last one: the engine holds the node while it runs */
}

/* A reference taken between two reads must have raised the count by one. In the layout that has one word less the
 * owner's block is uninitialised. If the count never rises, the references cannot be dropped, and this node leaks. */
static bool counts_owners(const struct mt_node_owner *first, enum mt_node_layout layout) {
  bool same = false;
  unsigned taken = 0;
  while (!same && taken < MT_NODE_COUNT_TRIES) {
    uint32_t before, after;
    if (!mt_safe_read(&before, (uintptr_t)count_of(first, layout), sizeof before) || !before) return false;
    struct mt_node_owner second = mt_backward.current_node();
    if (second.node != first->node || !mt_safe_read(&after, (uintptr_t)count_of(first, layout), sizeof after))
      return false;
    same = after == before + 1;
    taken++;
  }
  while (same && taken--) drop_references(first, layout);
  return same;
}

static const uint64_t *words_of(const void *node, enum mt_node_layout layout) {
  return (const uint64_t *)((const char *)node +
                            (layout == MT_NODE_SHARED ? MT_NODE_NUMBER_SHARED : MT_NODE_NUMBER_INTRUSIVE));
}

/* Thread numbers are small, so that a word may equal one by accident. The words before it must be plausible, too. */
static bool may_hold_thread(const uint64_t *words) {
  return !(words[HEIGHT] >> 32) && (words[POINTED] & 0xff) <= 1 && words[THREAD] && !(words[THREAD] >> 32);
}

static bool holds_known_thread(const uint64_t *words) {
  return words[THREAD] == __atomic_load_n(&first_known, __ATOMIC_RELAXED) ||
         words[THREAD] == __atomic_load_n(&last_known, __ATOMIC_RELAXED);
}

/* Whether nodes keep the thread that created them: each sampled one has a plausible number, and one a known one. */
static void calibrate_thread(const void *node, bool last_sample) {
  static bool seen;
  if (!calibration.last) seen = false;
  uint64_t words[WORDS];
  bool can = mt_safe_read(words, (uintptr_t)words_of(node, mt_backward.layout), sizeof words) && may_hold_thread(words);
  seen = seen || (can && holds_known_thread(words));
  if (!mt_backward.thread || (can && !(last_sample && !seen))) return;
  mt_backward.thread = NULL;
  change();
}

static void calibrate_word(const void *node, bool last_sample) {
  mt_tlsword_narrow(&calibration.search, &mt_backward.torch, (uintptr_t)node);
  uint32_t word = mt_tlsword_found(&calibration.search, &mt_backward.torch);
  if (!calibration.last || mt_backward.node_word != MT_TLSWORD_NONE || (word == MT_TLSWORD_NONE && !last_sample))
    return;
  mt_backward.node_word = word;
  change();
}

static void calibrate(const void *node) {
  if (__atomic_load_n(&calibration.over, __ATOMIC_ACQUIRE) ||
      __atomic_exchange_n(&calibration.busy, 1, __ATOMIC_ACQUIRE))
    return;
  if (calibration.last != (uintptr_t)node && calibration.samples < MT_NODE_SAMPLES) {
    bool last_sample = ++calibration.samples == MT_NODE_SAMPLES;
    calibrate_thread(node, last_sample);
    calibrate_word(node, last_sample);
    calibration.last = (uintptr_t)node;
    __atomic_store_n(&calibration.over, last_sample, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&calibration.busy, 0, __ATOMIC_RELEASE);
}

/* The node that runs in the calling thread, by get_current_node(), or NULL. */
static const void *running(void) {
  enum mt_node_layout layout = mt_backward.layout;
  struct mt_node_owner owner =
      layout == MT_NODE_UNKNOWN ? (struct mt_node_owner){NULL, NULL, NULL} : mt_backward.current_node();
  if (!owner.node) return NULL;
  if (!__atomic_load_n(&count_verified, __ATOMIC_ACQUIRE)) {
    if (!counts_owners(&owner, layout))
      return disable("off: this version counts a node's owners in a place that is not known"), NULL;
    __atomic_store_n(&count_verified, 1, __ATOMIC_RELEASE);
  }
  drop_references(&owner, layout);
  calibrate(owner.node);
  return owner.node;
}

static const uint64_t *word_in(const struct mt_tlsblock *block, uint32_t word) {
  const uint64_t *here = word == MT_TLSWORD_NONE ? NULL : mt_tlsblock_here(block);
  return here ? here + word : NULL;
}

/* A variable that does not hold what its function gives is not that variable. */
void mt_backward_bind_thread(struct mt_thread *self) {
  self->op_version = __atomic_load_n(&mt_backward.changes, __ATOMIC_ACQUIRE) + 1;
  self->op_thread = self->op_thread_valid = 0;
  uint64_t next = mt_backward.peek();
  bool records = mt_backward.records();
  const void *node = running();
  const uint64_t *word = word_in(&mt_backward.torch, mt_backward.next_word);
  self->op_next = word && *word == next ? word : NULL;
  word = word_in(&mt_backward.torch, mt_backward.node_word);
  self->op_node = word && *word == (uintptr_t)node ? word : NULL;
  uint32_t bit = mt_backward.records_bit;
  word = word_in(&mt_backward.c10, bit == MT_TLSWORD_NONE ? bit : bit / 64);
  self->op_records = word && (*word >> bit % 64 & 1) == records ? word : NULL;
}

uint64_t mt_backward_thread(struct mt_thread *self) {
  uint64_t thread = mt_backward.thread ? mt_backward.thread() : 0;
  if (!__atomic_load_n(&first_known, __ATOMIC_RELAXED)) __atomic_store_n(&first_known, thread, __ATOMIC_RELAXED);
  __atomic_store_n(&last_known, thread, __ATOMIC_RELAXED);
  self->op_thread = (thread & MT_OP_THREAD) << MT_OP_BITS;
  self->op_thread_valid = 1;
  return self->op_thread;
}

static uint64_t operator_of(const void *node) {
  enum mt_node_layout layout = mt_backward.layout;
  if (layout == MT_NODE_UNKNOWN) return 0;
  const uint64_t *words = words_of(node, layout);
  uint64_t number = (words[NUMBER] + 1) & MT_OP_NUMBER, thread = mt_backward.thread ? words[THREAD] & MT_OP_THREAD : 0;
  return number ? number | thread << MT_OP_BITS | MT_OP_BACKWARD
                : 0; /* one that only sums gradients up has no number: its bits are all set */
}

/* The variable owns its node, as a function's answer does. */
uint64_t mt_backward_node(const struct mt_thread *self, uint64_t otherwise) {
  const void *node = self->op_node ? (const void *)(uintptr_t)*self->op_node : running();
  return node ? operator_of(node) : otherwise;
}

bool mt_backward_runs(struct mt_thread *self) {
  if (!self || !mt_backward_known()) return true;
  if (self->op_version != __atomic_load_n(&mt_backward.changes, __ATOMIC_ACQUIRE) + 1) mt_backward_bind_thread(self);
  return (self->op_node ? (const void *)(uintptr_t)*self->op_node : running()) != NULL;
}
