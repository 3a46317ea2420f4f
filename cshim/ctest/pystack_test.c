/* Interning of Python stacks and code objects, without an interpreter: code objects are made up in memory as
 * CPython 3.11 lays them out. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "oracle.h"
#include "python/interpreter.h"
#include "python/pycode.h"
#include "python/python.h"
#include "spool/region.h"

enum { THREADS = 8, CODES = 400, STACKS = 4000 };

/* Objects as 3.11 has them; their first words are a count and a type. */
struct type {
  uint64_t head[2];
  uint8_t rest[400];
};
struct text {
  uint64_t count;
  struct type *type;
  uint64_t length, hash;
  uint32_t state, pad;
  uint64_t wide;
  char data[64];
};
struct bytes {
  uint64_t count;
  struct type *type;
  uint64_t length, hash;
  char data[64];
};
struct code {
  uint64_t count;
  struct type *type;
  uint64_t units;
  uint8_t fields[72 - 24];
  int32_t line;
  uint8_t more[112 - 76];
  struct text *file, *name, *qualname;
  struct bytes *lines;
  uint8_t last[184 - 144];
  uint8_t bytecode[200];
};
_Static_assert(offsetof(struct code, line) == 72 && offsetof(struct code, file) == 112 &&
                   offsetof(struct code, bytecode) == 184,
               "as in 3.11");

static struct type code_type, text_type, bytes_type;

static struct text *make_text(const char *text) {
  struct text *t = calloc(1, sizeof *t);
  t->type = &text_type;
  t->length = strlen(text);
  t->state = 1 << 2 | 1 << 5 | 1 << 6; /* one byte a character, compact, ascii */
  strcpy(t->data, text);
  return t;
}

static void fill(struct code *c, const char *name, const char *file, int line) {
  struct bytes *lines = calloc(1, sizeof *lines);
  lines->type = &bytes_type;
  lines->length = (uint64_t)sprintf(lines->data, "lines of %s", name);
  *c = (struct code){.type = &code_type,
                     .units = 100, .line = line, .file = make_text(file), .name = make_text(name),
                     .qualname = make_text(check_format("Q.%s", name)),
                     .lines = lines};
}

static bool start(struct oracle *o) {
  const char *spool = check_output("d.bin");
  mt_interpreter.code_type = (uintptr_t)&code_type;
  mt_interpreter.text_type = (uintptr_t)&text_type;
  mt_interpreter.bytes_type = (uintptr_t)&bytes_type;
  CHECK(!mt_pylayout_find(&mt_interpreter.layout, 0x030b0000, NULL));
  check_event(1);
  mt_interpreter.state = MT_PY_TRUSTED; /* only now: there is nothing to walk */
  return oracle_open(o, spool);
}

/* What a walk would give for that code object. */
static struct mt_pyraw raw(const struct code *c, unsigned instruction, uint64_t identity) {
  return (struct mt_pyraw){(uint64_t)c | (instruction & 1), (uint64_t)c + 184 + 2 * instruction, identity, 0};
}

/* The entry's head; *texts is what follows it, NULL if the entry does not hang together. */
static struct mt_code head_of(const struct oracle *o, uint32_t id, const char **texts) {
  uint32_t length;
  struct mt_code head = {0};
  const char *entry = oracle_entry(o, id, MT_DICT_CODE, &length);
  *texts = NULL;
  if (!entry) return head;
  memcpy(&head, entry, sizeof head);
  if (length == sizeof head + head.name_bytes + head.qualname_bytes + head.file_bytes + head.table_bytes)
    *texts = entry + sizeof head;
  return head;
}

/* Whether frame number index of the stack is that code object at that instruction. */
static bool frame_is(const struct oracle *o, uint32_t stack, unsigned index, const struct code *c,
                     unsigned instruction) {
  uint32_t length;
  const char *entry = oracle_entry(o, stack, MT_DICT_PYSTACK, &length), *texts;
  if (!entry || length < 8 + 16 * (index + 1)) return false;
  struct mt_pyframe frame;
  memcpy(&frame, entry + 8 + 16 * index, sizeof frame);
  struct mt_code head = head_of(o, frame.code, &texts);
  if (!texts) return false;
  const struct text *parts[] = {c->name, c->qualname, c->file};
  const uint32_t sizes[] = {head.name_bytes, head.qualname_bytes, head.file_bytes};
  bool same = frame.where == (2 * instruction << 1 | (instruction & 1)) && head.first_line == c->line;
  for (unsigned i = 0; i < 3; texts += sizes[i++])
    same = same && sizes[i] == parts[i]->length && !memcmp(texts, parts[i]->data, sizes[i]);
  return same && head.table_bytes == c->lines->length && !memcmp(texts, c->lines->data, head.table_bytes);
}

static struct code codes[CODES];

static void make_codes(void) {
  for (unsigned i = 0; i < CODES; i++)
    fill(&codes[i], check_format("name%u", i), check_format("/srv/file%u.py", i % 7), (int)i);
}

/* Stack number n: as deep as its number says, of frames that only it has in that order. */
static unsigned stack_of(unsigned n, struct mt_pyraw *frames) {
  unsigned depth = 1 + n % 30;
  for (unsigned i = 0; i < depth; i++) {
    unsigned code = (n + i * 37) % CODES;
    frames[i] = raw(&codes[code], (n / CODES + i) % 100, code + 1);
  }
  return depth;
}

static bool stack_is(const struct oracle *o, uint32_t id, unsigned n) {
  struct mt_pyraw frames[MT_PYTHON_MAX];
  unsigned depth = stack_of(n, frames);
  uint32_t length;
  const void *entry = oracle_entry(o, id, MT_DICT_PYSTACK, &length);
  bool same = entry && length == 8 + 16 * depth;
  for (unsigned i = 0; same && i < depth; i++)
    same = frame_is(o, id, i, &codes[(n + i * 37) % CODES], (n / CODES + i) % 100);
  return same;
}

static void interns(void) {
  struct oracle o;
  struct mt_pyraw frames[MT_PYTHON_MAX];
  make_codes();
  CHECK(start(&o));
  unsigned depth = stack_of(17, frames);
  uint32_t id = mt_python_intern(frames, depth, MT_STACK_WHOLE);
  CHECK(id && stack_is(&o, id, 17));
  CHECK_EQ(mt_python_intern(frames, depth, MT_STACK_WHOLE), id);
  CHECK(mt_python_intern(frames, depth, MT_STACK_DEPTH) != id); /* why it ends is part of it */
  CHECK(mt_python_intern(frames, depth - 1, MT_STACK_WHOLE) != id);
  frames[depth - 1].self = 0x1230;
  uint32_t other = mt_python_intern(frames, depth, MT_STACK_WHOLE);
  CHECK(other && other != id);
  CHECK_EQ(oracle_entries(&o, MT_DICT_CODE), depth);
  CHECK_EQ(mt_python_intern(frames, 0, MT_STACK_WHOLE), 0);
  CHECK_EQ(mt_python_intern(frames, MT_PYTHON_MAX + 1, MT_STACK_WHOLE), 0);
  CHECK_EQ(o.header->lost_dict, 0);
}

static uint32_t ids[THREADS][STACKS];

static void intern_all(uint64_t thread) {
  struct mt_pyraw frames[MT_PYTHON_MAX];
  for (unsigned i = 0; i < STACKS; i++) {
    unsigned n = thread % 2 ? STACKS - 1 - i : i;
    ids[thread][n] = mt_python_intern(frames, stack_of(n, frames), MT_STACK_WHOLE);
  }
}

static void races(void) {
  struct oracle o;
  make_codes();
  CHECK(start(&o));
  check_threads(THREADS, intern_all);
  unsigned wrong = 0;
  for (unsigned t = 0; t < THREADS; t++)
    for (unsigned n = 0; n < STACKS; n++) wrong += !stack_is(&o, ids[t][n], n);
  CHECK_EQ(wrong, 0);
  unsigned stacks = oracle_entries(&o, MT_DICT_PYSTACK), written = oracle_entries(&o, MT_DICT_CODE);
  CHECK(stacks >= STACKS && stacks <= THREADS * STACKS && written >= CODES && written <= THREADS * CODES);
  check_threads(THREADS, intern_all);
  CHECK_EQ(oracle_entries(&o, MT_DICT_PYSTACK), stacks); /* now all of them are known */
  CHECK_EQ(oracle_entries(&o, MT_DICT_CODE), written);
}

/* More stacks than the first tables have slots. */
static void many(void) {
  struct oracle o;
  enum { MANY = 60000 };
  static uint32_t first[MANY];
  struct mt_pyraw frames[2];
  make_codes();
  CHECK(start(&o));
  for (unsigned i = 0; i < MANY; i++) {
    frames[0] = raw(&codes[i % CODES], i / CODES % 100, 1 + i % CODES);
    frames[1] = raw(&codes[i / 1000], i % 100, 1 + i / 1000);
    frames[1].self = 16 * i;
    first[i] = mt_python_intern(frames, 2, MT_STACK_WHOLE);
  }
  unsigned other = 0, none = 0;
  for (unsigned i = 0; i < MANY; i++) {
    frames[0] = raw(&codes[i % CODES], i / CODES % 100, 1 + i % CODES);
    frames[1] = raw(&codes[i / 1000], i % 100, 1 + i / 1000);
    frames[1].self = 16 * i;
    none += !first[i];
    other += mt_python_intern(frames, 2, MT_STACK_WHOLE) != first[i];
  }
  CHECK_EQ(none, 0);
  CHECK_EQ(other, 0);
  CHECK_EQ(oracle_entries(&o, MT_DICT_PYSTACK), MANY);
  CHECK_EQ(o.header->lost_dict, 0);
}

/* Another code object comes to lie where one lay: told apart by its identity, or, for code that does not stay, by a
 * closer look. */
static void replaced(void) {
  struct oracle o;
  static struct code c;
  uint32_t last = 0;
  CHECK(start(&o));
  for (unsigned i = 0; i < 3000; i++) {
    bool transient = i % 3 != 0; /* the others are known by their identity alone */
    fill(&c, check_format("f%u", i), transient ? "<string>" : "/srv/a.py", (int)i);
    struct mt_pyraw frame = raw(&c, 5, transient ? 1 : 1000 + i);
    uint32_t id = mt_python_intern(&frame, 1, MT_STACK_WHOLE);
    CHECK(id != last && frame_is(&o, id, 0, &c, 5));
    CHECK_EQ(mt_python_intern(&frame, 1, MT_STACK_WHOLE), id);
    last = id;
  }
  CHECK_EQ(oracle_entries(&o, MT_DICT_CODE), 3000);
}

static void not_code(void) {
  struct oracle o;
  static struct code c;
  CHECK(start(&o));
  mt_interpreter.why = "";
  fill(&c, "f", "a.py", 1);
  c.name = (struct text *)0x10; /* nothing is mapped there */
  struct mt_pyraw frame = raw(&c, 0, 1);
  CHECK_EQ(mt_python_intern(&frame, 1, MT_STACK_WHOLE), 0);
  CHECK_EQ(mt_interpreter.state, MT_PY_OFF);
  CHECK_TEXT(mt_interpreter.why, "a code object does not look like one");
  CHECK_EQ(oracle_entries(&o, MT_DICT_CODE), 0);
}

int main(void) {
  static const struct check_case cases[] = {
      {"interns", interns}, {"races", races}, {"many", many}, {"replaced", replaced}, {"not code", not_code}};
  return check_main("pystack", cases, sizeof cases / sizeof *cases);
}
