/* Getting between PyTorch's allocator and its callers, with a C++ allocator of the same names (allocator_torch.cpp),
 * whose own choice of a pool is the oracle; and names that only a file has, against what nm says. */
#define _GNU_SOURCE
#include "allocator/calls.h"
#include "allocator/filesymbol.h"
#include "allocator/place.h"
#include "allocator/vtable.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/thread.h"
#include "check.h"
#include "oracle.h"

static struct {
  void (*on_block)(void (*)(void));
  int (*begin)(int, uint64_t, uint64_t, int, uint64_t);
  void (*end)(int, uint64_t, uint64_t);
  int (*alloc)(size_t, uint64_t);
  void (*chosen)(uint64_t *, uint64_t *);
  void (*current)(long);
  void (*fraction)(double, int);
  double (*fraction_of)(int);
  unsigned (*empty)(void);
} fake;

static struct oracle o;
static char here[4096];

/* False, and the case is over, where there is no C++ compiler. */
static bool load(const char *variant) {
  const char *file = check_format("%s/%slibc10_cuda.so", here, variant);
  void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (!library) return check_skip("no C++ compiler"), false;
  *(void **)&fake.on_block = dlsym(library, "fake_on_block"), *(void **)&fake.begin = dlsym(library, "fake_begin"),
         *(void **)&fake.end = dlsym(library, "fake_end");
  *(void **)&fake.alloc = dlsym(library, "fake_alloc"), *(void **)&fake.chosen = dlsym(library, "fake_chosen"),
         *(void **)&fake.current = dlsym(library, "fake_current");
  *(void **)&fake.fraction = dlsym(library, "fake_fraction"),
         *(void **)&fake.fraction_of = dlsym(library, "fake_fraction_of"),
         *(void **)&fake.empty = dlsym(library, "fake_empty");
  const char *path = check_output("t.bin");
  check_event(0x1000);
  return oracle_open(&o, path);
}

/* What stands in the spool for a key. */
static const char *info(const char *key) {
  for (uint32_t id = 1; id <= o.header->index_used; id++) {
    uint32_t length;
    const char *entry = oracle_entry(&o, id, MT_DICT_INFO, &length);
    if (entry && length > strlen(key) && !strcmp(entry, key))
      return check_format("%.*s", (int)(length - strlen(key) - 1), entry + strlen(key) + 1);
  }
  return "";
}

static unsigned count(uint8_t kind, struct mt_record *last) {
  struct oracle_record *records;
  size_t all = oracle_records(&o, &records);
  unsigned found = 0;
  for (size_t i = 0; i < all; i++)
    if (records[i].record.kind == kind) *last = records[i].record, found++;
  free(records);
  return found;
}

static uint64_t met_pool, met_stream;

/* Where the report of the block comes in a real allocator. */
static void block(void) {
  uint64_t a, b, place[2] = {0, 0};
  uint32_t length, id = mt_place_intern(0);
  const uint64_t *entry = id ? oracle_entry(&o, id, MT_DICT_PLACE, &length) : NULL;
  fake.chosen(&a, &b);
  if (entry && length == sizeof place) memcpy(place, entry, sizeof place);
  met_stream = place[0], met_pool = place[1];
  CHECK_EQ(met_pool, a ? 2 * a : b ? 2 * b + 1 : 0);
}

static void pools_of(const char *variant) {
  if (!load(variant)) return;
  mt_allocator_attach();
  mt_allocator_first_block();
  CHECK_TEXT(info("adapter.torch.pools"), "on");
  CHECK_TEXT(info("adapter.torch.streams"), "on");
  CHECK_TEXT(info("adapter.torch.waits"), "off: this version's allocator has other functions"); /* it has none */
  fake.on_block(block);
  srand(11);
  unsigned inside = 0;
  for (unsigned round = 0; round < 3000; round++) {
    uint64_t pool = 1 + (unsigned)rand() % 8, stream = 0x1000u * ((unsigned)rand() % 4);
    switch (rand() % 4) {
      case 0: fake.begin(pool > 4, pool & 1 ? pool : 0, pool & 1 ? 0 : pool, rand() % 3, stream); break;
      case 1: fake.end(pool > 4, pool & 1 ? pool : 0, pool & 1 ? 0 : pool); break;
      default:
        CHECK_EQ(fake.alloc(1, stream), 1);
        CHECK_EQ(met_stream, stream);
        inside += met_pool != 0;
    }
  }
  CHECK(inside > 100);
  CHECK_EQ(fake.alloc(0, 0x1000), 0); /* it throws, through our function */
}

static void calls_of(const char *variant, unsigned emptied) {
  struct mt_record r;
  if (!load(variant)) return;
  mt_allocator_attach();
  mt_allocator_first_block();
  CHECK_EQ(count(MT_SETTING, &r), 1); /* of the second device, from before */
  double fraction;
  memcpy(&fraction, &r.size, sizeof fraction);
  CHECK(fraction == 0.25 && r.device == 1 && oracle_text_is(&o, (uint32_t)r.name, "per_process_memory_fraction"));
  fake.fraction(0.5, 0);
  CHECK(fake.fraction_of(0) == 0.5);
  CHECK_EQ(count(MT_SETTING, &r), 2);
  memcpy(&fraction, &r.size, sizeof fraction);
  CHECK(fraction == 0.5 && r.device == 0);
  CHECK_EQ(fake.empty(), emptied);
  CHECK_EQ(count(MT_EMPTY, &r), 2);
  CHECK_EQ(r.size, 2);
  CHECK_EQ(fake.begin(0, 7, 0, 2, 0), 1);
  CHECK_EQ(fake.begin(0, 7, 0, 2, 0), 0); /* refused, as without us */
  CHECK_EQ(count(MT_POOL, &r), 1);
  CHECK_EQ(r.pool, 14);
  fake.end(0, 7, 0);
  CHECK_EQ(count(MT_POOL, &r), 2);
}

static void pools(void) { pools_of(""); }
static void pools_newer(void) { pools_of("newer/"); }
static void calls(void) { calls_of("", 1); }
static void calls_newer(void) { calls_of("newer/", 43); }

static void other_allocator(void) {
  if (!load("other/")) return;
  mt_allocator_attach();
  mt_allocator_first_block();
  CHECK_TEXT(info("adapter.torch.pools"), "off: the program uses another allocator than PyTorch's native one");
  CHECK_EQ(fake.empty(), 1);
  fake.current(3);
  uint64_t *place = (uint64_t[2]){0};
  uint32_t length, id = mt_place_intern(0);
  const void *entry = oracle_entry(&o, id, MT_DICT_PLACE, &length);
  if (entry) memcpy(place, entry, 16);
  CHECK_EQ(place[0], 0x3000);
}

static void stripped(void) {
  if (!load("stripped/")) return;
  mt_allocator_attach();
  mt_allocator_first_block();
  CHECK_TEXT(info("adapter.torch.pools"), "off: the library's file does not name the allocator's functions");
  CHECK_TEXT(info("adapter.torch.waits"), "off: the library's file does not name the allocator's functions");
  CHECK_EQ(fake.empty(), 1);
}

/* A file of functions that nobody exports. */
static const char *build(void) {
  FILE *source = fopen("names.c", "w");
  for (unsigned i = 0; i < 300; i++)
    fprintf(source,
            "__attribute__((noinline)) static int hidden_%u(int x) { return x * %u; }\nint shown_%u(int x) { return "
            "hidden_%u(x) + 1; }\n",
            i, i, i, i);
  fclose(source);
  return system("cc -shared -fPIC -O0 -w names.c -o names.so") ? NULL : "./names.so";
}

static void names_of_a_file(void) {
  const char *path = build();
  CHECK(path);
  unsigned wrong = 0, seen = 0;
  FILE *list = popen("nm -S --defined-only names.so", "r");
  char line[256], name[128];
  unsigned long value, size;
  while (fgets(line, sizeof line, list)) {
    if (strlen(line) < 36 || line[33] != ' ' || sscanf(line, "%lx %lx %*c %127s", &value, &size, name) != 3) continue;
    struct mt_filesymbol wanted[2] = {{name, 0, 0, 0}, {"no_such_name", 0, 0, 0}};
    seen++;
    if (!mt_filesymbol_find(path, wanted, 2) || wanted[0].found != 1 || wanted[0].value != value ||
        wanted[0].size != size || wanted[1].found)
      wrong++;
  }
  pclose(list);
  CHECK(seen > 600);
  CHECK_EQ(wrong, 0);
  struct mt_filesymbol many = {"hidden_12*", 0, 0, 0};
  CHECK(mt_filesymbol_find(path, &many, 1));
  CHECK_EQ(many.found, 11);
}

/* Cut anywhere, and with any byte of its head and section table changed, a file gives no names or right ones, and no
 * fault. */
static void damaged_files(void) {
  const char *path = build();
  static char data[1 << 20];
  FILE *file = fopen(path, "r");
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  srand(5);
  for (unsigned i = 0; i < 400; i++) {
    size_t cut = i < 100 ? size * i / 100 : size, at = i % 2 ? (size_t)rand() % 64 : size - 1 - (size_t)rand() % 2048;
    char before = data[at];
    if (i >= 100) data[at] = (char)rand();
    file = fopen("damaged.so", "w");
    fwrite(data, 1, cut, file);
    fclose(file);
    data[at] = before;
    struct mt_filesymbol wanted = {"hidden_7", 0, 0, 0};
    if (cut < size) CHECK(!mt_filesymbol_find("damaged.so", &wanted, 1));
    else mt_filesymbol_find("damaged.so", &wanted, 1);
  }
  struct mt_filesymbol wanted = {"hidden_7", 0, 0, 0};
  CHECK(!mt_filesymbol_find("no such file", &wanted, 1));
  CHECK(!mt_filesymbol_find(".", &wanted, 1));
  CHECK(!mt_filesymbol_find("/dev/null", &wanted, 1));
}

int main(int argc, char **argv) {
  (void)argc;
  char *path = realpath(argv[0], here);
  if (path) *strrchr(here, '/') = 0;
  static const struct check_case cases[] = {
      {"pools", pools},
      {"pools, newer", pools_newer},
      {"calls", calls},
      {"calls, newer", calls_newer},
      {"another allocator", other_allocator},
      {"stripped", stripped},
      {"names of a file", names_of_a_file},
      {"damaged files", damaged_files},
  };
  return check_main("allocator", cases, sizeof cases / sizeof *cases);
}
