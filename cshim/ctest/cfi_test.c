/* Unwind information: programs written by hand, and real tables that were damaged at random. */
#define _GNU_SOURCE
#include "unwind/unwindrow.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "check.h"
#include "elf/loaded.h"
#include "unwind/expression.h"

static struct mt_value value(enum mt_base base, bool load, int32_t inner, int32_t add) {
  return (struct mt_value){.base = (uint8_t)base, .load = load, .inner = inner, .add = add};
}

#define CHECK_VALUE(have, base_, load_, inner_, add_)                          \
  do {                                                                         \
    struct mt_value have_ = (have), want_ = value(base_, load_, inner_, add_); \
    CHECK_EQ(have_.base, want_.base);                                          \
    CHECK_EQ(have_.load, want_.load);                                          \
    CHECK_EQ(have_.inner, want_.inner);                                        \
    CHECK_EQ(have_.add, want_.add);                                            \
  } while (0)

enum { CODE = 0x1000 };

/* A row of a program that follows what every function begins with: CFA = rsp + 8, the return address under it. */
static struct mt_unwind_row row_of(const uint8_t *program, size_t bytes, uintptr_t pc) {
  static const uint8_t cie[] = {0x0c, 7, 8, 0x90, 1};
  struct mt_frame_entry e = {.start = CODE,
                             .end = CODE + 0x10000000,
                             .cie_program = {cie, cie + sizeof cie, false},
                             .fde_program = {program, program + bytes, false},
                             .code_alignment = 1, .data_alignment = -8, .encoding = 0x1b,
                              .return_address_register = 16};
  return mt_unwind_row(&e, pc);
}
#define ROW(pc, ...) row_of((uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), CODE + (pc))

static void locations(void) {
  CHECK_VALUE(ROW(0, 0x41, 0x0e, 16).cfa, MT_BASE_SP, false, 8, 0);
  CHECK_VALUE(ROW(1, 0x41, 0x0e, 16).cfa, MT_BASE_SP, false, 16, 0);
  CHECK_VALUE(ROW(299, 0x03, 0x2c, 1, 0x0e, 16).cfa, MT_BASE_SP, false, 8, 0);
  CHECK_VALUE(ROW(300, 0x03, 0x2c, 1, 0x0e, 16).cfa, MT_BASE_SP, false, 16, 0);
  CHECK_VALUE(ROW(200, 0x02, 200, 0x0e, 16).cfa, MT_BASE_SP, false, 16, 0);
  CHECK_VALUE(ROW(0xffff, 0x04, 0, 0, 1, 0, 0x0e, 16).cfa, MT_BASE_SP, false, 8, 0);
  CHECK_VALUE(ROW(0x10000, 0x04, 0, 0, 1, 0, 0x0e, 16).cfa, MT_BASE_SP, false, 16, 0);
}

static void rules(void) {
  struct mt_unwind_row row = ROW(9, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6);
  CHECK_EQ(row.kind, MT_ROW_STEP);
  CHECK_VALUE(row.cfa, MT_BASE_BP, false, 16, 0);
  CHECK_VALUE(row.bp, MT_BASE_CFA, true, -16, 0);
  CHECK_VALUE(row.caller, MT_BASE_CFA, true, -8, 0);
  CHECK_VALUE(ROW(0, 0x86, 2, 0xc6).bp, MT_BASE_BP, false, 0, 0); /* restored to what it was at first */
  CHECK_VALUE(ROW(0, 0x86, 2, 0x06, 6).bp, MT_BASE_BP, false, 0, 0);
  CHECK_VALUE(ROW(0, 0x86, 2, 0x08, 6).bp, MT_BASE_BP, false, 0, 0);                  /* the same */
  CHECK_VALUE(ROW(0, 0x86, 2, 0x0a, 0x86, 3, 0x0b).bp, MT_BASE_CFA, true, -16, 0);    /* remembered and recalled */
  CHECK_VALUE(ROW(0, 0x05, 6, 3).bp, MT_BASE_CFA, true, -24, 0);
  CHECK_VALUE(ROW(0, 0x11, 6, 0x7d).bp, MT_BASE_CFA, true, 24, 0);
  CHECK_VALUE(ROW(0, 0x2f, 6, 3).bp, MT_BASE_CFA, true, 24, 0);
  CHECK_VALUE(ROW(0, 0x14, 6, 2).bp, MT_BASE_CFA, false, -16, 0);
  CHECK_VALUE(ROW(0, 0x15, 6, 0x7e).bp, MT_BASE_CFA, false, 16, 0);
  CHECK_VALUE(ROW(0, 0x16, 6, 2, 0x76, 8).bp, MT_BASE_BP, false, 8, 0);
  CHECK_VALUE(ROW(0, 0x12, 6, 0x7c).cfa, MT_BASE_BP, false, 32, 0);
  CHECK_VALUE(ROW(0, 0x13, 0x7c).cfa, MT_BASE_SP, false, 32, 0);
  CHECK_VALUE(ROW(0, 0x2e, 32).cfa, MT_BASE_SP, false, 8, 0);
  CHECK_EQ(ROW(0, 0x07, 16).kind, MT_ROW_OUTERMOST);
  CHECK_EQ(ROW(0, 0x09, 6, 3).kind, MT_ROW_UNSUPPORTED);   /* rbp in rbx */
  CHECK_EQ(ROW(0, 0x09, 16, 0).kind, MT_ROW_UNSUPPORTED);
  CHECK_EQ(ROW(0, 0x09, 3, 0).kind, MT_ROW_STEP);          /* of a register that is not kept */
  CHECK_EQ(ROW(0, 0x0d, 3).kind, MT_ROW_UNSUPPORTED);      /* CFA by rbx */
  CHECK_EQ(ROW(0, 0x05, 7, 3).kind, MT_ROW_UNSUPPORTED);   /* a stack pointer of its own */
  CHECK_EQ(ROW(0, 0x14, 7, 0).kind, MT_ROW_STEP);          /* the CFA, said aloud */
  CHECK_EQ(ROW(0, 0x3f).kind, MT_ROW_UNSUPPORTED);         /* no such instruction */
  CHECK_EQ(ROW(0, 0x0e).kind, MT_ROW_UNSUPPORTED);         /* cut off */
  CHECK_EQ(ROW(0, 0x0b).kind, MT_ROW_UNSUPPORTED);         /* recalls what was not remembered */
  CHECK_EQ(ROW(0, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a).kind, MT_ROW_UNSUPPORTED);
  CHECK_EQ(ROW(0, 0x0f, 200, 0x77, 8).kind, MT_ROW_UNSUPPORTED); /* an expression longer than the program */
}

static void realigned(void) {
  struct mt_unwind_row row =
      ROW(0, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0); /* CFA = *(rbp - 8), rbp at 0(rbp) */
  CHECK_EQ(row.kind, MT_ROW_STEP);
  CHECK_VALUE(row.cfa, MT_BASE_BP, true, -8, 0);
  CHECK_VALUE(row.bp, MT_BASE_BP, true, 0, 0);
  CHECK_EQ(ROW(0, 0x0c, 13, 0, 0x10, 6, 2, 0x76, 0).kind, MT_ROW_REALIGNED);
  CHECK_EQ(ROW(0, 0x0c, 13, 0).kind, MT_ROW_UNSUPPORTED);
}

/* The entry of a procedure linkage table: the CFA moves by 8 in the middle of each 16 bytes. */
static void linkage_table(void) {
  for (unsigned at = 0; at < 16; at++)
    CHECK_VALUE(ROW(at, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22).cfa, MT_BASE_SP, false,
                at >= 11 ? 16 : 8, 0);
}

static bool evaluate(const uint8_t *at, size_t bytes, struct mt_value *v) {
  return mt_dwarf_expression(at, (uint32_t)bytes, CODE, value(MT_BASE_CFA, false, 0, 0), v);
}
#define EVALUATE(v, ...) evaluate((uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), v)

static void expressions(void) {
  struct mt_value v;
  CHECK(EVALUATE(&v, 0x23, 16));
  CHECK_VALUE(v, MT_BASE_CFA, false, 16, 0);
  CHECK(EVALUATE(&v, 0x77, 0xa0, 1, 0x06, 0x38, 0x1c)); /* *(rsp + 160) - 8 */
  CHECK_VALUE(v, MT_BASE_SP, true, 160, -8);
  CHECK(EVALUATE(&v, 0x0a, 0, 1, 0x76, 0, 0x22));
  CHECK_VALUE(v, MT_BASE_BP, false, 256, 0);
  CHECK(EVALUATE(&v, 0x09, 0xf8, 0x22));
  CHECK_VALUE(v, MT_BASE_CFA, false, -8, 0);
  CHECK(EVALUATE(&v, 0x12, 0x13, 0x76, 8, 0x16, 0x13));
  CHECK_VALUE(v, MT_BASE_BP, false, 8, 0);
  CHECK(!EVALUATE(&v, 0x06, 0x06));             /* a word that a word points to */
  CHECK(!EVALUATE(&v, 0x73, 0));                /* rbx */
  CHECK(!EVALUATE(&v, 0x13, 0x13));             /* nothing left */
  CHECK(!EVALUATE(&v, 0x13, 0x13, 0x13, 0x30)); /* more than that */
  CHECK(!EVALUATE(&v, 0x76, 0, 0x3f, 0x1a));    /* aligned down: not known before */
  CHECK(!EVALUATE(&v, 0x0c, 1, 2));             /* cut off */
  CHECK(!EVALUATE(&v, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x22)); /* further than a row can say */
  CHECK(!EVALUATE(&v, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12, 0x12));
}

/* The C library's table, copied to where the address sanitizer watches its ends. */
static uint8_t *copied;
static size_t copied_bytes;
static struct mt_frame_table table;
static uintptr_t first_code, last_code;

static int find_frames(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size, (void)context;
  if (!strstr(info->dlpi_name, "/libc.so")) return 0;
  const ElfW(Phdr) *frames = NULL;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) frames = &info->dlpi_phdr[i];
  for (unsigned i = 0; frames && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_LOAD && p->p_flags & PF_X) first_code = start, last_code = start + p->p_memsz;
    if (p->p_type != PT_LOAD || frames->p_vaddr < p->p_vaddr || frames->p_vaddr >= p->p_vaddr + p->p_filesz) continue;
    uintptr_t header = info->dlpi_addr + frames->p_vaddr;
    copied_bytes = start + p->p_filesz - header;
    copied = malloc(copied_bytes);
    memcpy(copied, (void *)header, copied_bytes);
    table = (struct mt_frame_table){copied, copied, copied + copied_bytes};
    first_code += (uintptr_t)copied - header;
    last_code += (uintptr_t)copied - header;
  }
  return 1;
}

static uint64_t state = 2463534242u;
static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static unsigned found, stepped;
static void look_up(uintptr_t pc) {
  struct mt_frame_entry entry;
  if (!mt_frame_entry_find(&table, pc, &entry)) return;
  found++;
  CHECK(pc >= entry.start && pc < entry.end);
  struct mt_unwind_row row = mt_unwind_row(&entry, pc);
  CHECK(row.kind >= MT_ROW_STEP && row.kind <= MT_ROW_UNSUPPORTED);
  stepped += row.kind == MT_ROW_STEP;
}

static uintptr_t random_code(void) { return first_code + next_random() % (last_code - first_code); }

#define MUTATIONS 20000

/* Damages a few bytes of what the next look-ups will read (the head, the index around them, their entries), looks up,
 * and repairs them. */
static void damaged(void) {
  dl_iterate_phdr(find_frames, NULL);
  CHECK(copied != NULL);
  if (!copied) return;
  for (int i = 0; i < 1000; i++) look_up(random_code());
  CHECK(found > 900 && stepped > 900);
  found = 0;
  for (int i = 0; i < MUTATIONS; i++) {
    uintptr_t pc = random_code();
    struct mt_frame_entry entry;
    size_t where[8], near = next_random() % copied_bytes;
    uint8_t old[8];
    if (next_random() % 4 && mt_frame_entry_find(&table, pc, &entry))
      near = (size_t)((next_random() % 3 ? entry.fde_program.at : entry.cie_program.at) - copied);
    else if (next_random() % 2)
      near = 0;
    unsigned n = 1 + (unsigned)(next_random() % 8);
    for (unsigned k = 0; k < n; k++) {
      size_t at = near + next_random() % 48;
      where[k] = at < 24 ? at : at - 24;
      if (where[k] >= copied_bytes) where[k] = 0;
      old[k] = copied[where[k]];
      copied[where[k]] = (uint8_t)(next_random() % 3   ? next_random()
                                   : next_random() % 2 ? 0xff
                                                       : old[k] ^ 1u << next_random() % 8);
    }
    for (int k = 0; k < 3; k++) look_up(k ? random_code() : pc);
    while (n--) copied[where[n]] = old[n];
  }
  CHECK(found > MUTATIONS / 2);
  for (int i = 0; i < 1000; i++) { /* cut off */
    size_t bytes = next_random() % copied_bytes;
    uint8_t *cut = malloc(bytes ? bytes : 1);
    memcpy(cut, copied, bytes);
    struct mt_frame_table whole = table;
    uintptr_t moved = (uintptr_t)cut - (uintptr_t)copied;
    table = (struct mt_frame_table){cut, cut, cut + bytes};
    for (int k = 0; k < 20; k++) look_up(random_code() + moved);
    table = whole;
    free(cut);
  }
}

/* A program that would run for ever if its length were believed, and one that only says nothing. */
static void long_programs(void) {
  size_t bytes = 64u << 20;
  uint8_t *nops = calloc(bytes, 1);
  CHECK_EQ(row_of(nops, bytes, CODE).kind, MT_ROW_UNSUPPORTED);
  CHECK_EQ(row_of(nops, 1000, CODE).kind, MT_ROW_STEP);
  free(nops);
}

static void headers(void) {
  uint8_t odd[64] = {1, 0x1b, 0x03, 0x3b};
  struct mt_frame_table t = {odd, odd, odd + sizeof odd};
  struct mt_frame_entry e;
  CHECK(!mt_frame_entry_find(&t, (uintptr_t)odd, &e)); /* empty */
  memset(odd + 8, 0xff, 4);
  CHECK(!mt_frame_entry_find(&t, (uintptr_t)odd, &e)); /* more entries than bytes */
  odd[2] = 0xff;
  CHECK(!mt_frame_entry_find(&t, (uintptr_t)odd, &e)); /* no table */
  t.header = NULL;
  CHECK(!mt_frame_entry_find(&t, (uintptr_t)odd, &e));
}

int main(void) {
  static const struct check_case cases[] = {
      {"locations", locations},         {"rules", rules},
      {"realigned", realigned},         {"linkage table", linkage_table},
      {"expressions", expressions},     {"headers", headers},
      {"long programs", long_programs}, {"damaged", damaged},
  };
  return check_main("cfi", cases, sizeof cases / sizeof *cases);
}
