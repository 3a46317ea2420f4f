#define _GNU_SOURCE
/* The calls, and the log. */
#include "oracle.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#define EXPORT __attribute__((visibility("default")))
#define FRAMES 1024
#define CUDA_DEVICE 1 /* c10::DeviceType */

static int log_file = -1;
static double rate = 0.1;
static uint64_t seed = 1;
static uint64_t ordinal;
static __thread bool inside;

void oracle_add(struct oracle_text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t room = ORACLE_TEXT - text->length;
  int length = vsnprintf(text->bytes + text->length, room, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= room)
    text->full = true;
  else
    text->length += (size_t)length;
}

static bool drawn(void) {
  uint64_t x = seed * 0x9E3779B97F4A7C15ull + __atomic_add_fetch(&ordinal, 1, __ATOMIC_RELAXED);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  x ^= x >> 31;
  return (double)(x >> 11) < rate * 0x1p53;
}

enum { MEMTRACE, ORACLE, GREENLET, LIBRARIES };

/* Where the code of some libraries lies. dladdr would say it, too, but searches all symbols of what it finds. */
static struct span {
  const char *part; /* of the file's name */
  uintptr_t start, end;
} spans[LIBRARIES] = {{"libmemtrace", 0, 0}, {"oracle.so", 0, 0}, {"_greenlet.", 0, 0}};

static int find_spans(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
  for (unsigned i = 0; name && i < LIBRARIES; i++) {
    if (!strstr(name, spans[i].part)) continue;
    for (unsigned h = 0; h < info->dlpi_phnum; h++) {
      const ElfW(Phdr) *header = &info->dlpi_phdr[h];
      if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
      spans[i].start = info->dlpi_addr + header->p_vaddr;
      spans[i].end = spans[i].start + header->p_memsz;
    }
  }
  return 0;
}

static bool lies_in(uintptr_t address, int library) {
  return address >= spans[library].start && address < spans[library].end;
}

struct walk {
  uintptr_t frames[FRAMES];
  unsigned count;
  bool greenlet;
};

/* What lies behind a greenlet's first frame belongs to whoever ran there when it began, and may be overwritten since:
 * the walk ends at it. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
  struct walk *walk = argument;
  if (walk->greenlet || walk->count == FRAMES) return _URC_END_OF_STACK;
  uintptr_t address = _Unwind_GetIP(context);
  walk->greenlet = lies_in(address, GREENLET);
  walk->frames[walk->count++] = address;
  return _URC_NO_REASON;
}

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("ORACLE_LOG"), *text;
  if (!path) return;
  if ((text = getenv("ORACLE_RATE"))) rate = atof(text);
  if ((text = getenv("ORACLE_SEED"))) seed = strtoull(text, NULL, 0);
  log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log_file < 0) fprintf(stderr, "oracle: cannot write %s: %s\n", path, strerror(errno));
}

/* What lies behind the wrappers, ours and memtrace's: they are at most the first few frames. */
static void add_native(struct oracle_text *text) {
  struct walk walk = {.count = 0};
  dl_iterate_phdr(find_spans, NULL);
  _Unwind_Backtrace(step, &walk);
  unsigned first = 0;
  /* One of memtrace's behind others is that of a call of the allocator that passes through it, and belongs to the
   * stack. */
  while (first < walk.count && (lies_in(walk.frames[first], MEMTRACE) || lies_in(walk.frames[first], ORACLE))) first++;
  while (walk.count && !walk.frames[walk.count - 1])
    walk.count--; /* libgcc ends a stack whose return address is unknown with a 0 */
  for (unsigned i = first; i < walk.count; i++) oracle_add(text, i == first ? "%lx" : ",%lx", walk.frames[i]);
  if (walk.greenlet) oracle_add(text, ",greenlet");
}

static void tell_loop(void) {
  static bool told;
  uintptr_t from, to;
  char line[64];
  if (__atomic_load_n(&told, __ATOMIC_RELAXED) || !oracle_python_loop(&from, &to) ||
      __atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
    return;
  int length = snprintf(line, sizeof line, "i\t%lx\t%lx\n", from, to);
  if (write(log_file, line, (size_t)length) != length) log_file = -1;
}

/* One write per line, so that lines of threads do not mix. */
static void tell(char level, const char *kind, uint64_t address, uint64_t size) {
  static const char *const states[] = {[ORACLE_NONE] = "none",
                                       [ORACLE_HELD] = "held",
                                       [ORACLE_ASKED] = "asked",
                                       [ORACLE_SKIPPED] = "skipped",
                                       [ORACLE_ENDING] = "ending"};
  static __thread char *bytes;
  if (log_file < 0 || inside) return;
  inside = true;
  int error = errno;
  if (!bytes) bytes = malloc(ORACLE_TEXT);
  struct oracle_text text = {bytes, 0, !bytes};
  if (bytes) {
    bool wanted = drawn();
    if (wanted) tell_loop();
    oracle_add(&text, "e\t%ld\t%c\t%s\t%lx\t%lu\t", syscall(SYS_gettid), level, kind, address, size);
    size_t head = text.length;
    if (wanted) {
      struct oracle_text python = {malloc(ORACLE_TEXT), 0, false};
      enum oracle_state state = python.bytes ? oracle_python(&python) : ORACLE_SKIPPED;
      oracle_add(&text, "%s\t", states[state]);
      add_native(&text);
      oracle_add(&text, "\t%.*s", (int)python.length, python.bytes ? python.bytes : "");
      free(python.bytes);
    }
    if (!wanted || text.full) { /* a stack too long for a line was not drawn */
      text.length = head;
      text.full = false;
      oracle_add(&text, "plain\t\t");
    }
    oracle_add(&text, "\n");
    if (write(log_file, text.bytes, text.length) != (ssize_t)text.length)
      fprintf(stderr, "oracle: the log is cut: %s\n", strerror(errno));
  }
  errno = error;
  inside = false;
}

/* torch reports while it holds its allocator's lock. */

#define USAGE _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define OOM _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#define NAME_OF(symbol) #symbol
#define NAME(symbol) NAME_OF(symbol)

static void *torch_function(const char *name) {
  void *next = dlsym(RTLD_NEXT, name);
  if (next) return next;
  void *c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  return c10 ? dlsym(c10, name) : NULL; /* what was loaded once stays */
}

EXPORT void USAGE(void *ptr, int64_t size, size_t allocated, size_t reserved, uint16_t device);
void USAGE(void *ptr, int64_t size, size_t allocated, size_t reserved, uint16_t device) {
  static void (*next)(void *, int64_t, size_t, size_t, uint16_t);
  if ((int8_t)device == CUDA_DEVICE)
    tell('f', size < 0 ? "free" : "alloc", (uint64_t)ptr, size < 0 ? 0 - (uint64_t)size : (uint64_t)size);
  if (!next) next = torch_function(NAME(USAGE));
  if (next) next(ptr, size, allocated, reserved, device);
  __asm__ volatile(""); /* no tail call: the frame is to be seen in debuggers */
}

EXPORT void OOM(int64_t size, size_t allocated, size_t reserved, uint16_t device);
void OOM(int64_t size, size_t allocated, size_t reserved, uint16_t device) {
  static void (*next)(int64_t, size_t, size_t, uint16_t);
  if ((int8_t)device == CUDA_DEVICE) tell('f', "oom", 0, (uint64_t)size);
  if (!next) next = torch_function(NAME(OOM));
  if (next) next(size, allocated, reserved, device);
}

/* The runtime may be in nobody's scope but its user's, and dlsym would hand out memtrace's wrapper: it is asked by the
 * version of its symbols. */

static int find_runtime(struct dl_phdr_info *info, size_t size, void *argument) {
  (void)size;
  const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
  if (!name || strncmp(name, "/libcudart", 10)) return 0;
  *(const char **)argument = info->dlpi_name;
  return 1;
}

static void *runtime_function(const char *name) {
  static const char *const versions[] = {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"};
  const char *path = NULL;
  void *found = NULL;
  dl_iterate_phdr(find_runtime, &path);
  void *runtime = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  for (unsigned i = 0; runtime && i < sizeof versions / sizeof *versions && !found; i++)
    found = dlvsym(runtime, name, versions[i]);
  return found;
}

EXPORT int cudaMalloc(void **out, size_t size);
int cudaMalloc(void **out, size_t size) {
  static int (*next)(void **, size_t);
  if (!next) next = runtime_function("cudaMalloc");
  if (!next) return 3; /* cudaErrorInitializationError */
  int status = next(out, size);
  if (!status && *out) tell('r', "alloc", (uint64_t)*out, size);
  return status;
}

EXPORT int cudaFree(void *ptr);
int cudaFree(void *ptr) {
  static int (*next)(void *);
  if (!next) next = runtime_function("cudaFree");
  if (!next) return 3;
  if (ptr) tell('r', "free", (uint64_t)ptr, 0);
  return next(ptr);
}
