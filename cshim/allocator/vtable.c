#define _GNU_SOURCE
#include "allocator/vtable.h"

#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "allocator/calls.h"
#include "allocator/place.h"
#include "allocator/waiting.h"
#include "attach/object.h"
#include "base/sys.h"
#include "allocator/filesymbol.h"
#include "elf/symbol.h"
#include "spool/dict.h"

#define NATIVE "_ZN3c104cuda20CUDACachingAllocator6Native"
#define VIRTUAL(name) NATIVE "22NativeCachingAllocator" name
#define DEVICE(name) NATIVE "22DeviceCachingAllocator" name

/* The virtual functions come first, numbered as mt_allocator_calls. */
enum { TABLE = MT_CALLS, RECORDS, COMPLETES, COMPLETES_ALL, KNOWN, NAMES };
static struct mt_filesymbol names[NAMES] = {
    [MT_CALL_BEGIN] = {VIRTUAL("19beginAllocateToPoolEaSt4pairIyyESt8functionIFbP11CUstream_stEE"), 0, 0, 0},
    [MT_CALL_END] = {VIRTUAL("17endAllocateToPoolEaSt4pairIyyE"), 0, 0, 0},
    [MT_CALL_EMPTY] = {VIRTUAL("10emptyCacheE*"), 0, 0, 0},
    [MT_CALL_SET_FRACTION] = {VIRTUAL("17setMemoryFractionEda"), 0, 0, 0},
    [MT_CALL_FRACTION] = {VIRTUAL("17getMemoryFractionEa"), 0, 0, 0},
    [MT_CALL_RAW] = {VIRTUAL("21raw_alloc_with_streamEmP11CUstream_st"), 0, 0, 0},
    [TABLE] = {"_ZTVN3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE", 0, 0, 0},
    [RECORDS] = {DEVICE("13insert_eventsE*"), 0, 0, 0},
    [COMPLETES] = {DEVICE("14process_eventsE*"), 0, 0, 0},
    [COMPLETES_ALL] = {DEVICE("27synchronize_and_free_eventsE*"), 0, 0, 0},
    [KNOWN] = {"_ZN3c104cuda20getCurrentCUDAStreamEa", 0, 0,
               0}, /* exported as well: shows that the file is the library's */
};

/* libc10_cuda.so, as the loader has it. */
static struct {
  struct mt_loaded object;
  struct mt_range relro;
  char path[PATH_MAX];
} library;

/* Entries of memtrace info for each part. */
enum { CALLS, STREAMS, WAITS, SETTINGS, REQUESTED, PARTS };
static const char *const part_names[PARTS] = {"adapter.torch.pools", "adapter.torch.streams", "adapter.torch.waits",
                                              "adapter.torch.settings", "adapter.torch.requested"};
static const char *states[PARTS];
static bool attached;

static int match(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  const char *slash = strrchr(info->dlpi_name, '/');
  if (!slash || strcmp(slash + 1, "libc10_cuda.so") || strlen(info->dlpi_name) >= sizeof library.path) return 0;
  strcpy(library.path, info->dlpi_name);
  library.relro = mt_object_relro(info);
  return 1;
}

static bool find_library(void) {
  library.object = mt_symbol_object("libc10_cuda.so");
  return library.object.dynamic && dl_iterate_phdr(match, NULL);
}

/* The file's name of an exported function must lead where the loader's does. */
static bool file_is_the_librarys(void) {
  return mt_filesymbol_find(library.path, names, NAMES) && names[KNOWN].found == 1 &&
         library.object.base + names[KNOWN].value == mt_symbol_find(&library.object, names[KNOWN].name);
}

static struct mt_range range_of(const struct mt_filesymbol *s) {
  return (struct mt_range){library.object.base + s->value, library.object.base + s->value + s->size};
}

/* The word of the table that holds the function's address, or NULL if it is not the only one. */
static void **word_of(const struct mt_filesymbol *function) {
  struct mt_range table = range_of(&names[TABLE]);
  void **found = NULL;
  for (void **word = (void **)table.start; (uintptr_t)(word + 1) <= table.end; word++) {
    if ((uintptr_t)*word != library.object.base + function->value) continue;
    if (found) return NULL;
    found = word;
  }
  return function->found == 1 ? found : NULL;
}

/* A program may have chosen another allocator: then the table is not that of the object. */
static bool table_is_in_use(void) {
  void ***allocator = (void ***)mt_symbol_find(&library.object, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  void **object = allocator ? *allocator : NULL;
  return object && (uintptr_t)*object == library.object.base + names[TABLE].value + 2 * sizeof(void *);
}

static bool replace(void **words[MT_CALLS]) {
  struct mt_range relro = library.relro;
  bool read_only = relro.start < relro.end && (uintptr_t)words[0] - relro.start < relro.end - relro.start;
  if (read_only && mt_sys_mprotect((void *)relro.start, relro.end - relro.start, PROT_READ | PROT_WRITE)) return false;
  for (unsigned i = 0; i < MT_CALLS; i++) {
    mt_allocator_calls[i].real = *words[i];
    if (mt_allocator_calls[i].ours) __atomic_store_n(words[i], mt_allocator_calls[i].ours, __ATOMIC_RELEASE);
  }
  if (read_only) mt_sys_mprotect((void *)relro.start, relro.end - relro.start, PROT_READ);
  return true;
}

static const char *link_calls(bool named) {
  void **words[MT_CALLS];
  if (!named || names[TABLE].found != 1) return "off: the library's file does not name the allocator's functions";
  if (!table_is_in_use()) return "off: the program uses another allocator than PyTorch's native one";
  for (unsigned i = 0; i < MT_CALLS; i++)
    if (!(words[i] = word_of(&names[i]))) return "off: this version's allocator has other functions";
  return replace(words) ? "on" : "off: the system does not let the allocator's table be changed";
}

static const char *watch_events(bool named) {
  if (!named) return "off: the library's file does not name the allocator's functions";
  if (names[RECORDS].found != 1 || names[COMPLETES].found != 1 || names[COMPLETES_ALL].found > 1)
    return "off: this version's allocator has other functions";
  struct mt_range none = {0, 0}, completes[2] = {range_of(&names[COMPLETES]),
                                                 names[COMPLETES_ALL].found ? range_of(&names[COMPLETES_ALL]) : none};
  mt_waiting_watch(range_of(&names[RECORDS]), completes);
  return "on";
}

static bool exports(const char *file, const char *name) {
  struct mt_loaded object = mt_symbol_object(file);
  return object.dynamic && mt_symbol_find(&object, name);
}

static void write_states(void) {
  static uint64_t noted_in;
  uint64_t epoch = __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE),
           before = __atomic_load_n(&noted_in, __ATOMIC_ACQUIRE);
  if (!epoch || epoch == before ||
      !__atomic_compare_exchange_n(&noted_in, &before, epoch, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return;
  for (unsigned i = 0; i < PARTS; i++)
    if (states[i]) mt_dict_info(part_names[i], states[i], strlen(states[i]));
}

static void attach(void) {
  bool named = find_library() && file_is_the_librarys();
  states[STREAMS] = mt_place_find() ? "on" : "off: this version does not export which stream is current";
  states[CALLS] = link_calls(named);
  states[WAITS] = watch_events(named);
  states[SETTINGS] = exports("libc10.so", MT_PARSE_STRING) || exports("libc10_cuda.so", MT_PARSE_TEXT)
                         ? "on"
                         : "off: this version does not export what reads its settings";
  states[REQUESTED] = exports("libc10.so", MT_ROUND_V2) || exports("libc10_cuda.so", MT_ROUND)
                          ? "on"
                          : "off: this version does not look up how it rounds sizes";
}

/* One thread; another that comes meanwhile goes on without. */
void mt_allocator_attach(void) {
  static uint32_t begun;
  if (!__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL)) {
    attach();
    __atomic_store_n(&attached, true, __ATOMIC_RELEASE);
  }
}

void mt_allocator_first_block(void) {
  static uint32_t asked;
  if (!__atomic_load_n(&attached, __ATOMIC_ACQUIRE) || __atomic_exchange_n(&asked, 1, __ATOMIC_ACQ_REL)) return;
  write_states();
  mt_allocator_record_settings();
}

void mt_allocator_poll(void) {
  if (__atomic_load_n(&attached, __ATOMIC_ACQUIRE)) write_states();
}
