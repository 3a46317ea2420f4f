#define _GNU_SOURCE
#include "python/pycode.h"

#include <string.h>

#include "base/saferead.h"
#include "base/table.h"
#include "python/interpreter.h"
#include "spool/dict.h"
#include "spool/region.h"

#define MT_PY_TEXT_MAX 4096u         /* bytes of a name, a qualified name or a path; the rest is cut */
#define MT_PY_LINES_MAX (256u << 10) /* larger line tables are left out */
#define MT_PY_CODE_BITS 16u
#define MT_PY_CODE_PROBES 64u
#define MT_PY_SUBCLASS_OF_TEXT (1u << 28) /* in a type's flags */

/* One per address: code objects come and go, and the one that lies there now is the one that counts. A writer takes the
 * slot by setting id to 0 and stores it last, so that a reader which sees the same id before and after has seen what
 * belongs together: ids are never used twice. */
struct slot {
  uint64_t code; /* 0: empty */
  uint64_t identity;
  uint32_t id;
  uint8_t transient, module_call;
};

static struct slot *table;
struct mt_module_call mt_module_calls[MT_PY_MODULE_CALLS];
uint32_t mt_module_calls_known;

void mt_pycode_start(void) {
  static struct mt_table memory;
  table = mt_table_start(&memory, sizeof *table << MT_PY_CODE_BITS);
}

/* A text as Python keeps it. */
struct text {
  const char *data;
  uint32_t bytes;
  uint8_t width;
};

static uint64_t word_at(const char *block, uint16_t offset) {
  uint64_t word;
  memcpy(&word, block + offset, sizeof word);
  return word;
}

/* The memory of a code object that is seen for the first time is only used as far as it can be read. A known one is
 * running code of a trusted interpreter: it is read again with every event. */
static bool read_checked(void *to, uintptr_t address, size_t size, bool checked) {
  if (checked) return mt_safe_read(to, address, size);
  memcpy(to, (const void *)address, size);
  return true;
}

static bool is_text(uintptr_t type, bool checked) {
  const struct mt_interpreter *py = &mt_interpreter;
  uint64_t flags = 0;
  return type == py->text_type || (type && read_checked(&flags, type + py->layout.type_flags, sizeof flags, checked) &&
                                   flags & MT_PY_SUBCLASS_OF_TEXT);
}

static bool readable(uintptr_t data, uint64_t bytes) {
  char first, last;
  return !bytes || (mt_safe_read(&first, data, 1) && mt_safe_read(&last, data + bytes - 1, 1));
}

static bool read_text(uintptr_t object, struct text *text, bool checked) {
  const struct mt_pylayout *l = &mt_interpreter.layout;
  char head[128];
  *text = (struct text){"", 0, 1};
  if (!object) return true;
  if (!read_checked(head, object, l->text_ascii, checked) || !is_text(word_at(head, l->object_type), checked))
    return false;
  uint32_t state;
  memcpy(&state, head + l->text_state, sizeof state);
  uint32_t width = state >> l->kind_bit & 7, compact = state >> (l->kind_bit + 3) & 1,
           ascii = state >> (l->kind_bit + 4) & 1;
  uint64_t length = word_at(head, l->text_length), data = object + (compact && ascii ? l->text_ascii : l->text_compact);
  if ((width != 1 && width != 2 && width != 4) || length > UINT32_MAX) return false;
  if (!compact && !read_checked(&data, data, sizeof data, checked)) return false;
  uint64_t bytes = length * width;
  if (bytes > MT_PY_TEXT_MAX) bytes = MT_PY_TEXT_MAX;
  if (checked && !readable(data, bytes)) return false;
  *text = (struct text){(const char *)data, (uint32_t)bytes, (uint8_t)width};
  return true;
}

/* Everything that is kept of a code object. The texts point into the interpreter's memory: the object is running, so
 * nothing of it goes away meanwhile. */
struct code {
  struct text name, qualname, file;
  const char *lines;
  uint32_t lines_bytes;
  int32_t first_line;
  uint8_t table;
};

static bool read_lines(uintptr_t object, struct code *c, bool checked) {
  const struct mt_interpreter *py = &mt_interpreter;
  char head[64];
  if (!read_checked(head, object, py->layout.bytes_data, checked) ||
      word_at(head, py->layout.object_type) != py->bytes_type)
    return false;
  uint64_t bytes = word_at(head, py->layout.bytes_length);
  if (bytes > MT_PY_LINES_MAX) return true;
  if (checked && !readable(object + py->layout.bytes_data, bytes)) return false;
  c->lines = (const char *)object + py->layout.bytes_data;
  c->lines_bytes = (uint32_t)bytes;
  c->table = py->layout.lines;
  return true;
}

static bool read_code(uint64_t code, struct code *c, bool checked) {
  const struct mt_interpreter *py = &mt_interpreter;
  const struct mt_pylayout *l = &py->layout;
  char block[256];
  *c = (struct code){.table = MT_LINES_NONE, .lines = "", .qualname = {"", 0, 1}};
  if (!read_checked(block, code, l->code_lines + 8u, checked) || word_at(block, l->object_type) != py->code_type)
    return false;
  memcpy(&c->first_line, block + l->code_line, sizeof c->first_line);
  return read_text(word_at(block, l->code_name), &c->name, checked) &&
         read_text(word_at(block, l->code_file), &c->file, checked) &&
         (!l->code_qualname || read_text(word_at(block, l->code_qualname), &c->qualname, checked)) &&
         read_lines(word_at(block, l->code_lines), c, checked);
}

static bool is(const struct text *text, const char *name) {
  return text->width == 1 && text->bytes == strlen(name) && !memcmp(text->data, name, text->bytes);
}

static bool ends(const struct text *text, const char *end) {
  size_t size = strlen(end);
  return text->width == 1 && text->bytes >= size && !memcmp(text->data + text->bytes - size, end, size);
}

static bool is_named(uint64_t code, const char *name) {
  struct code c;
  return code && read_code(code, &c, true) && is(&c.name, name);
}

/* torch from 2.1 on calls a module's _call_impl from _wrapped_call_impl, which alone counts then. */
static bool calls_module(const struct code *c, uint64_t caller) {
  if (ends(&c->file, "torch/nn/modules/module.py"))
    return is(&c->name, "_wrapped_call_impl") ||
           (is(&c->name, "_call_impl") && !is_named(caller, "_wrapped_call_impl"));
  return is(&c->name, "__call__") && ends(&c->file, "mxnet/gluon/block.py");
}

/* From now on the walk takes down this code's first argument. An entry of another code object that lay at the address
 * is replaced. */
static void add_module_call(uint64_t code, uint64_t identity) {
  unsigned at = 0;
  for (unsigned i = 0; i < MT_PY_MODULE_CALLS; i++) {
    uint64_t known = __atomic_load_n(&mt_module_calls[i].code, __ATOMIC_RELAXED);
    at = i;
    if (!known || known == code) break;
  }
  __atomic_store_n(&mt_module_calls[at].code, 1, __ATOMIC_RELEASE); /* matches nothing */
  __atomic_store_n(&mt_module_calls[at].identity, identity, __ATOMIC_RELEASE);
  __atomic_store_n(&mt_module_calls[at].code, code, __ATOMIC_RELEASE);
  __atomic_add_fetch(&mt_module_calls_known, 1, __ATOMIC_RELEASE);
}

static uint32_t write_code(const struct code *c, bool module_call) {
  struct mt_code head = {.first_line = c->first_line,
                         .table = c->table, .module_call = module_call, .name_width = c->name.width,
                         .qualname_width = c->qualname.width, .file_width = c->file.width, .name_bytes = c->name.bytes,
                         .qualname_bytes = c->qualname.bytes, .file_bytes = c->file.bytes,
                         .table_bytes = c->lines_bytes};
  return mt_dict_append(MT_DICT_CODE,
                        (struct mt_bytes[]){{&head, sizeof head},
                                            {c->name.data, c->name.bytes},
                                            {c->qualname.data, c->qualname.bytes},
                                            {c->file.data, c->file.bytes},
                                            {c->lines, c->lines_bytes}},
                        5);
}

/* Whether what lies in the dictionary is this code object. */
static bool is_entry(uint32_t id, const struct code *c) {
  const struct mt_index_entry *entry = &mt_index()[id - 1];
  struct mt_code head;
  const char *at = mt_data() + entry->offset;
  memcpy(&head, at, sizeof head);
  if (head.first_line != c->first_line || head.name_bytes != c->name.bytes ||
      head.qualname_bytes != c->qualname.bytes || head.file_bytes != c->file.bytes ||
      head.table_bytes != c->lines_bytes)
    return false;
  const struct mt_bytes parts[] = {{c->name.data, c->name.bytes},
                                   {c->qualname.data, c->qualname.bytes},
                                   {c->file.data, c->file.bytes},
                                   {c->lines, c->lines_bytes}};
  at += sizeof head;
  for (unsigned i = 0; i < sizeof parts / sizeof *parts; at += parts[i++].size)
    if (parts[i].size && memcmp(at, parts[i].data, parts[i].size)) return false;
  return true;
}

/* The slot of that address: taken by it, or empty; NULL if there is no room. */
static struct slot *slot_of(uint64_t code) {
  uint32_t mask = (1u << MT_PY_CODE_BITS) - 1, at = (uint32_t)(code * 0x9E3779B97F4A7C15ull >> 40) & mask;
  for (unsigned i = 0; table && i < MT_PY_CODE_PROBES; i++, at = (at + 1) & mask) {
    uint64_t have = __atomic_load_n(&table[at].code, __ATOMIC_ACQUIRE);
    if (have == code || !have) return &table[at];
  }
  return NULL;
}

struct known {
  uint32_t id; /* 0: not known */
  bool transient, module_call;
};

static struct known look_up(const struct slot *slot, uint64_t code, uint64_t identity) {
  struct known none = {0}, k = {.id = __atomic_load_n(&slot->id, __ATOMIC_ACQUIRE)};
  if (!k.id || __atomic_load_n(&slot->code, __ATOMIC_RELAXED) != code ||
      __atomic_load_n(&slot->identity, __ATOMIC_RELAXED) != identity)
    return none;
  k.transient = __atomic_load_n(&slot->transient, __ATOMIC_RELAXED);
  k.module_call = __atomic_load_n(&slot->module_call, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&slot->id, __ATOMIC_RELAXED) == k.id ? k : none;
}

/* Lost races cost a second copy in the dictionary, and nothing else. */
static void publish(struct slot *slot, uint64_t code, uint64_t identity, const struct known *k) {
  uint64_t empty = 0;
  uint32_t id = __atomic_load_n(&slot->id, __ATOMIC_RELAXED);
  if (__atomic_load_n(&slot->code, __ATOMIC_RELAXED) != code) {
    if (!__atomic_compare_exchange_n(&slot->code, &empty, code, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  } else if (!id || !__atomic_compare_exchange_n(&slot->id, &id, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return;
  __atomic_thread_fence(__ATOMIC_RELEASE);
  __atomic_store_n(&slot->identity, identity, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->transient, k->transient, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->module_call, k->module_call, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->id, k->id, __ATOMIC_RELEASE);
}

/* Transient code: compiled from a string, or at an address where another code object was before. Versions that number
 * their code objects (co_version) need no second check. */
static bool is_transient(const struct code *c, const struct slot *slot, uint64_t code, uint64_t identity) {
  if (mt_interpreter.layout.code_version) return false;
  bool met = __atomic_load_n(&slot->code, __ATOMIC_RELAXED) == code && __atomic_load_n(&slot->id, __ATOMIC_RELAXED);
  bool replaces = met && __atomic_load_n(&slot->identity, __ATOMIC_RELAXED) !=
                             identity; /* else another thread added the same one meanwhile */
  return replaces || (c->file.bytes && c->file.width == 1 && c->file.data[0] == '<' &&
                      !(c->file.bytes > 7 && !memcmp(c->file.data, "<frozen", 7)));
}

uint32_t mt_pycode_intern(uint64_t code, uint64_t identity, uint64_t caller, bool *transient, bool *module_call) {
  struct slot *slot = slot_of(code);
  if (!slot) return mt_dict_count_lost();
  struct known k = look_up(slot, code, identity);
  struct code c;
  if (!k.id || k.transient) {
    if (!read_code(code, &c, true)) {
      mt_interpreter_disable("a code object does not look like one");
      return 0;
    }
    if (!k.id || !is_entry(k.id, &c)) {
      k = (struct known){.transient = k.transient || is_transient(&c, slot, code, identity),
                         .module_call = calls_module(&c, caller)};
      k.id = write_code(&c, k.module_call);
      if (k.id) publish(slot, code, identity, &k);
      if (k.id && k.module_call) add_module_call(code, identity);
    }
  }
  *transient = k.transient;
  *module_call = k.module_call;
  return k.id;
}

bool mt_pycode_matches(uint64_t code, uint64_t identity, uint32_t id) {
  const struct slot *slot = slot_of(code);
  struct code c;
  if (!slot) return false;
  struct known k = look_up(slot, code, identity);
  bool checked = mt_interpreter_state() != MT_PY_TRUSTED;
  return k.id == id && (!k.transient || (read_code(code, &c, checked) && is_entry(id, &c)));
}

uint32_t mt_pycode_offset(uint64_t code, uint64_t position) {
  const struct mt_pylayout *l = &mt_interpreter.layout;
  int64_t offset = l->shape == MT_PY_OBJECTS ? (int64_t)(int32_t)position * l->position_unit
                                             : (int64_t)(position - code - l->code_bytes);
  return offset < 0 ? MT_PY_NOT_BEGUN : (uint32_t)offset;
}
