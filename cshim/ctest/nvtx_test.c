/* What becomes of NVTX's names: ranges on the thread's stack, domains, registered strings; and how the library gets
 * into the tables. */
#define _GNU_SOURCE
#include "nvtx_program.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "spool/region.h"

static void tables(void) {
  static const int want[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, want2[] = {1, 2, 3, 4, 5, 10, 11, 12, 13};
  CHECK_EQ(attach(), 1);
  CHECK_EQ(version_set, 3);
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) CHECK(core[want[i]]);
  for (size_t i = 0; i < sizeof want2 / sizeof *want2; i++) CHECK(core2[want2[i]]);
  CHECK(!core[0] && !core[12] && !core[13] && !core[14] && !core[15] && !core[16]);
  CHECK(!core2[0] && !core2[6] && !core2[7] && !core2[8] && !core2[14] && !core2[15] && !core2[16]);
}

static void shorter_tables(void) {
  core_size = 9;
  core2_size = 0;
  CHECK_EQ(attach(), 1);
  CHECK(core[8] && !core[9] && !core[10] && !core[11] && !core2[1]);
}

static void holes(void) {
  for (int i = 1; i <= CORE_SIZE; i++) core_table[i] = i == 9 ? NULL : &core[i];
  for (int i = 1; i <= CORE2_SIZE; i++) core2_table[i] = &core2[i];
  CHECK_EQ(InitializeInjectionNvtx2(export_table), 1);
  CHECK(!core[9] && core[8] && core[11]);
}

static void unusable(void) {
  CHECK_EQ(InitializeInjectionNvtx2(NULL), 0);
  callbacks.size = sizeof(size_t);
  CHECK_EQ(attach(), 0);
  callbacks.size = sizeof callbacks;
  callbacks.table_of = NULL;
  CHECK_EQ(attach(), 0);
  callbacks.table_of = table_of;
  version.size = 8;
  CHECK_EQ(attach(), 1);
  CHECK_EQ(version_set, 0);
}

static void switched_off(void) {
  mt_config_load((char *[]){(char *)"MEMTRACE_NVTX=0", NULL});
  CHECK_EQ(attach(), 0);
  CHECK(!core[9]);
  mt_config_load((char *[]){(char *)"MEMTRACE_NVTX=1", NULL});
  CHECK_EQ(attach(), 1);
  mt_config.disabled = true;
  CHECK_EQ(attach(), 0);
  CHECK_EQ(push("a"), NOTHING);
  CHECK_EQ(pop(), NOTHING);
}

static void ranges(void) {
  attach();
  CHECK_EQ(push("early"), 0);
  mark("too early");
  CHECK_EQ(mt_epoch_page->epoch, 0);
  record_into("t.bin");
  CHECK_TEXT(tag_now(), "early");
  CHECK_EQ(push("inner"), 1);
  CHECK_TEXT(tag_now(), "early.inner");
  CHECK_EQ(pop(), 1);
  CHECK_EQ(push_wide(L"w\u00e4rme \u20ac \U0001F600"), 1);
  CHECK_TEXT(tag_now(), "early.wärme € 😀");
  CHECK_EQ(push_wide((const wchar_t[]){0xd800, 0x110000, -1, 'x', 0}), 2);
  CHECK_TEXT(tag_now(), "early.wärme € 😀.\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx");
  CHECK_EQ(pop(), 2);
  CHECK_EQ(pop(), 1);
  CHECK_EQ(pop(), 0);
  CHECK_EQ(pop(), NOTHING);
  CHECK_TEXT(tag_now(), "");
}

static void events_and_sizes(void) {
  attach();
  record_into("t.bin");
  CHECK_EQ(push_event(event_of(ASCII, "message")), 0);
  CHECK_EQ(push_event(event_of(UNICODE, L"wide")), 1);
  CHECK_EQ(push_event(event_of(REGISTERED, keep(NULL, "kept"))), 2);
  CHECK_EQ(push_event(event_of(REGISTERED, keep_wide(NULL, L"k\u00e4pt"))), 3);
  CHECK_TEXT(tag_now(), "message.wide.kept.käpt");
  CHECK_EQ(push_event(NULL), 4);
  CHECK_EQ(push_event(event_of(0, "no type")), 5);
  CHECK_EQ(push_event(event_of(ASCII, NULL)), 6);
  CHECK_EQ(push_event(event_of(REGISTERED, NULL)), 7);
  CHECK_EQ(push_event(event_of(REGISTERED, &o)), 8);
  CHECK_EQ(push_event(event_of(17, "what")), 9);
  CHECK_EQ(push(NULL), 10);
  CHECK_EQ(push(""), 11);
  CHECK_TEXT(tag_now(), "message.wide.kept.käpt");
  for (int i = 11; i >= 0; i--) CHECK_EQ(pop(), i);
  CHECK_TEXT(tag_now(), "");
}

/* Attributes that end where their size says, right before memory that must not be touched. */
static void short_attributes(void) {
  long page = sysconf(_SC_PAGESIZE);
  char *two = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(two + page, (size_t)page, PROT_NONE);
  attach();
  record_into("t.bin");
  for (uint16_t size = 8; size <= sizeof(struct event); size += 8) {
    struct event e = *event_of(ASCII, "whole");
    e.size = size;
    memcpy(two + page - size, &e, size);
    CHECK_EQ(push_event((const void *)(two + page - size)), 0);
    CHECK_TEXT(tag_now(), size == sizeof e ? "whole" : "");
    pop();
  }
}

static void long_names(void) {
  char ascii[400], want[400];
  wchar_t wide[400];
  attach();
  record_into("t.bin");
  memset(ascii, 'a', sizeof ascii);
  ascii[399] = 0;
  memcpy(ascii + 253, "é", 2); /* ends at the limit */
  memcpy(want, ascii, 255);
  want[255] = 0;
  push(ascii);
  CHECK_TEXT(tag_now(), want);
  pop();
  memset(ascii, 'a', 399);
  memcpy(ascii + 254, "é", 2); /* would be cut in two */
  want[254] = 0;
  memset(want, 'a', 254);
  push(ascii);
  CHECK_TEXT(tag_now(), want);
  pop();
  for (int i = 0; i < 399; i++) wide[i] = L'€';
  wide[399] = 0;
  push_wide(wide);
  CHECK_EQ(strlen(tag_now()), 255);
  pop();
  ascii[399] = 0;
  const void *long_domain = domain(ascii);
  domain_push(long_domain, event_of(ASCII, ascii));
  const char *got = tag_now();
  CHECK_EQ(strlen(got), 255);
  CHECK(strchr(got, ':') == got + 127);
  domain_pop(long_domain);
}

static void domains(void) {
  attach();
  record_into("t.bin");
  const void *a = domain("A"), *b = domain_wide(L"B");
  CHECK(a && b && a != b);
  CHECK(domain("A") == a && domain_wide(L"A") == a);
  CHECK(keep(a, "A") && keep(a, "A") != a && keep(a, "A") == keep(b, "A"));
  CHECK(domain(NULL) && domain("") && keep(a, NULL) && keep(a, ""));
  CHECK_EQ(domain_push(a, event_of(ASCII, "1")), 0);
  CHECK_EQ(domain_push(b, event_of(ASCII, "2")), 0);
  CHECK_EQ(domain_push(a, event_of(ASCII, "3")), 1);
  CHECK_EQ(push("4"), 0);
  CHECK_TEXT(tag_now(), "A:1.B:2.A:3.4");
  CHECK_EQ(domain_pop(b), 0); /* from the middle */
  CHECK_TEXT(tag_now(), "A:1.A:3.4");
  CHECK_EQ(domain_pop(b), NOTHING);
  CHECK_EQ(domain_pop(a), 1);
  CHECK_TEXT(tag_now(), "A:1.4");
  CHECK_EQ(domain_pop(a), 0); /* the first of the path */
  CHECK_TEXT(tag_now(), "4");
  CHECK_EQ(domain_pop(a), NOTHING);
  CHECK_EQ(domain_push(domain(""), event_of(ASCII, "unnamed")), 0);
  CHECK_TEXT(tag_now(), "4.unnamed");
  CHECK_EQ(pop(), 0);
  CHECK_TEXT(tag_now(), "unnamed");
  CHECK_EQ(domain_push((const void *)&o, event_of(ASCII, "no domain")), 1);
  domain_mark(b, event_of(UNICODE, L"m"));
  CHECK_TEXT(marks(), "B:m|");
}

static void beside_the_api(void) {
  attach();
  record_into("t.bin");
  memtrace_tag_push("api");
  CHECK_EQ(push("nvtx"), 0);
  memtrace_tag_push("inner");
  CHECK_TEXT(tag_now(), "api.nvtx.inner");
  CHECK_EQ(pop(), 0);
  CHECK_TEXT(tag_now(), "api.inner");
  CHECK_EQ(pop(), NOTHING);
  CHECK_TEXT(tag_now(), "api.inner");
  push("left over");
  memtrace_tag_pop();
  CHECK_TEXT(tag_now(), "api.left over");
  memtrace_tag_pop();
  CHECK_TEXT(tag_now(), "left over");
  memtrace_tag_pop();
  CHECK_TEXT(tag_now(), "left over");
  CHECK_EQ(pop(), 0);
  push(NULL); /* levels without a name, at the front and in the middle */
  memtrace_tag_push("x");
  push(NULL);
  memtrace_tag_push("y");
  CHECK_TEXT(tag_now(), "x.y");
  CHECK_EQ(pop(), 1);
  CHECK_EQ(pop(), 0);
  CHECK_TEXT(tag_now(), "x.y");
  push("z");
  memtrace_tag_pop();
  memtrace_tag_pop();
  CHECK_TEXT(tag_now(), "z");
}

static void deep(void) {
  attach();
  record_into("t.bin");
  const void *d = domain("d");
  for (int i = 0; i < 60; i++) CHECK_EQ(push("n"), i);
  for (int i = 0; i < 1000; i++) memtrace_tag_push("api");
  for (int i = 0; i < 1000; i++) CHECK_EQ(domain_push(d, event_of(ASCII, "d")), i);
  for (int i = 60; i < 1000; i++) CHECK_EQ(push("n"), i);
  for (int i = 999; i >= 0; i--) CHECK_EQ(domain_pop(d), i);
  CHECK_EQ(domain_pop(d), NOTHING);
  for (int i = 999; i >= 60; i--) CHECK_EQ(pop(), i);
  CHECK_EQ(strlen(tag_now()), 60 * 2 - 1 + 4 * 4);
  for (int i = 0; i < 996; i++) memtrace_tag_pop();
  CHECK_EQ(strlen(tag_now()), 60 * 2 - 1 + 4 * 4);
  for (int i = 59; i >= 1; i--) CHECK_EQ(pop(), i);
  CHECK_TEXT(tag_now(), "n.api.api.api.api");
  for (int i = 0; i < 5; i++) memtrace_tag_pop();
  CHECK_TEXT(tag_now(), "n");
  CHECK_EQ(pop(), 0);
  CHECK_TEXT(tag_now(), "");
}

/* Random pushes and pops of many owners, compared with a stack that is a list of strings. */
static void random_stack(void) {
  enum { OWNERS = 6, LEVELS = 40 };
  struct {
    int owner;
    char name[24];
  } model[LEVELS];
  int depth = 0;
  unsigned seed = 4711;
  const void *d[OWNERS] = {NULL};
  attach();
  record_into("t.bin");
  for (int i = 2; i < OWNERS; i++) d[i] = domain(check_format("d%d", i));
  for (int step = 0; step < 4000; step++) {
    int owner = rand_r(&seed) % OWNERS;
    if (rand_r(&seed) % 2 && depth < LEVELS) {
      int named = rand_r(&seed) % 5;
      const char *name = named ? check_format("n%d", rand_r(&seed) % 9) : "";
      model[depth].owner = owner;
      strcpy(model[depth].name, !named || owner < 2 ? name : check_format("d%d:%s", owner, name));
      depth++;
      if (owner == 0) memtrace_tag_push(name);
      if (owner == 1) push(name);
      if (owner > 1) domain_push(d[owner], event_of(ASCII, name));
    } else {
      int at = depth - 1;
      while (at >= 0 && model[at].owner != owner) at--;
      int below = 0;
      for (int i = 0; i < at; i++) below += model[i].owner == owner;
      if (owner == 0) memtrace_tag_pop();
      if (owner == 1) CHECK_EQ(pop(), at < 0 ? NOTHING : below);
      if (owner > 1) CHECK_EQ(domain_pop(d[owner]), at < 0 ? NOTHING : below);
      if (at >= 0) memmove(&model[at], &model[at + 1], (size_t)(--depth - at) * sizeof *model);
    }
    if (step % 8) continue;
    char want[2048] = "";
    for (int i = 0; i < depth; i++)
      if (model[i].name[0]) strcat(strcat(want, want[0] ? "." : ""), model[i].name);
    CHECK_TEXT(tag_now(), want);
  }
}

static void kept_before_the_start(void) {
  char text[32];
  attach();
  strcpy(text, "registered early");
  const void *handle = keep(NULL, text), *d = domain("early");
  memset(text, 'z', sizeof text - 1);
  record_into("t.bin");
  CHECK_EQ(domain_push(d, event_of(REGISTERED, handle)), 0);
  CHECK_TEXT(tag_now(), "early:registered early");
}

static void many_kept(void) {
  attach();
  record_into("t.bin");
  const void *first = keep(NULL, "string 0"), *last = NULL;
  for (int i = 0; i < 40000; i++) {
    last = keep(NULL, check_format("string %d", i));
    if (!last) break;
  }
  CHECK(last && first == keep(NULL, "string 0"));
  push_event(event_of(REGISTERED, first));
  CHECK_TEXT(tag_now(), "string 0");
  push_event(event_of(REGISTERED, last)); /* no room was left for it: a level without a name */
  CHECK_TEXT(tag_now(), "string 0");
}

/* Handles that nobody made, around and inside what is kept. */
static void garbage(void) {
  attach();
  record_into("t.bin");
  const char *handle = keep(NULL, "real");
  for (long i = -64; i < 256; i++) {
    push_event(event_of(REGISTERED, handle + i));
    domain_push(handle + i, event_of(ASCII, "x"));
    domain_pop(handle + i);
    pop();
  }
  CHECK_EQ(pop(), NOTHING);
}

static void details(void) {
  attach();
  record_into("t.bin");
  push("aten::mm, seq = 12, op_id = 3");
  push("aten::add, op_id = 4");
  push("SumBackward0, sizes = [[2, 3]], input_op_ids = [(1,0)]");
  push(", seq = 5");
  push("a, b, seq=6");
  CHECK_TEXT(tag_now(), "aten::mm.aten::add.SumBackward0., seq = 5.a, b, seq=6");
}

/* Names without end leave half of the dictionary to others. */
static void endless(void) {
  attach();
  record_into("t.bin");
  for (int i = 0; i < 140000; i++) {
    push(check_format("step %d", i));
    pop();
  }
  uint32_t used = o.header->index_used;
  CHECK(used >= o.header->index_max / 2 && used < o.header->index_max / 2 + 16);
  CHECK(o.header->lost_dict > 0);
  mark("one more");
  push("step 139999");
  CHECK_TEXT(tag_now(), "");
  push("step 5");
  CHECK_TEXT(tag_now(), "step 5");
  pop();
  pop();
  memtrace_tag_push("the program's own");
  CHECK_TEXT(tag_now(), "the program's own");
  CHECK_TEXT(marks(), "");
}

static void in_the_child(void) {
  const char *spool = check_output("child.bin");
  push("more");
  check_event(++events);
  CHECK(oracle_open(&o, spool));
  CHECK_TEXT(tag_now(), "kept.D:held.more");
  CHECK_EQ(domain_pop(domain("D")), 0);
  CHECK_TEXT(tag_now(), "kept.more");
}

static void forks(void) {
  if (!CHECK_FORKS_OF_THREADS) return check_skip("forks of a process with threads");
  attach();
  record_into("t.bin");
  push("kept");
  domain_push(domain("D"), event_of(REGISTERED, keep(NULL, "held")));
  CHECK_EQ(check_in_child(in_the_child), 0);
  CHECK_TEXT(tag_now(), "kept.D:held");
}

static void quiet_thread(uint64_t number) {
  (void)number;
  push("q");
  domain_push(domain("Q"), event_of(ASCII, "q"));
  domain_pop(domain("Q"));
  pop();
}

/* Ranges alone make nobody record: neither the process nor a thread of one that does. */
static void no_start(void) {
  attach();
  check_threads(4, quiet_thread);
  CHECK_EQ(mt_epoch_page->epoch, 0);
  CHECK(!mt_region.base);
  record_into("t.bin");
  uint32_t rings = o.header->rings_used;
  check_threads(4, quiet_thread);
  CHECK_EQ(o.header->rings_used, rings);
}

static const void *seen[4][500];

static void register_all(uint64_t number) {
  for (int i = 0; i < 500; i++) {
    char name[32] = "string of the race    ";
    name[18] = (char)('a' + i / 100);
    name[19] = (char)('0' + i / 10 % 10);
    name[20] = (char)('0' + i % 10);
    seen[number][i] = keep(NULL, name);
  }
}

static void threads(void) {
  attach();
  check_threads(4, register_all);
  for (int i = 0; i < 500; i++)
    CHECK(seen[0][i] && seen[0][i] == seen[1][i] && seen[1][i] == seen[2][i] && seen[2][i] == seen[3][i]);
}

static void keeps_errno(void) {
  attach();
  record_into("t.bin");
  errno = 4711;
  for (int i = 0; i < 200; i++) {
    push(check_format("level %d", i));
    mark("m");
    range_start("r");
    range_end();
    domain_push(domain(check_format("d%d", i)), event_of(REGISTERED, keep(NULL, check_format("s%d", i))));
  }
  for (int i = 0; i < 300; i++) pop();
  CHECK_EQ(errno, 4711);
}

static void environment(void) {
  unsetenv("NVTX_INJECTION64_PATH");
  mt_nvtx_load();
  CHECK(!getenv("NVTX_INJECTION64_PATH")); /* a program that has us built in cannot be opened */
  setenv("NVTX_INJECTION64_PATH", "/else/where.so", 1);
  CHECK_TEXT(getenv("NVTX_INJECTION64_PATH"), "/else/where.so");
  setenv("NVTX", "short", 1);
  setenv("NVTX_INJECTION64_PATHS", "long", 1);
  CHECK_TEXT(getenv("NVTX"), "short");
  CHECK_TEXT(getenv("NVTX_INJECTION64_PATHS"), "long");
  CHECK(!getenv("") && !getenv("NVTX_INJECTION64_PAT") && !getenv("N"));
  record_into("t.bin");
  bool found = false;
  for (uint32_t id = 1; id <= o.header->index_used; id++) {
    uint32_t length = 0;
    const char *text = oracle_entry(&o, id, MT_DICT_INFO, &length);
    if (text && length == 5 + 17 && !memcmp(text, "nvtx\0taken by where.so", length)) found = true;
  }
  CHECK(found);
}

int main(void) {
  static const struct check_case cases[] = {
      {"tables", tables},
      {"shorter tables", shorter_tables},
      {"holes", holes},
      {"unusable", unusable},
      {"switched off", switched_off},
      {"ranges", ranges},
      {"events and sizes", events_and_sizes},
      {"short attributes", short_attributes},
      {"long names", long_names},
      {"domains", domains},
      {"beside the API", beside_the_api},
      {"deep", deep},
      {"random stack", random_stack},
      {"kept before the start", kept_before_the_start},
      {"many kept", many_kept},
      {"garbage", garbage},
      {"details", details},
      {"endless", endless},
      {"forks", forks},
      {"no start", no_start},
      {"threads", threads},
      {"errno", keeps_errno},
      {"environment", environment},
  };
  return check_main("nvtx", cases, sizeof cases / sizeof *cases);
}
