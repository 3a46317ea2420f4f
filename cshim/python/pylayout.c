#include "python/pylayout.h"

#include <stddef.h>
#include <string.h>

#include "spool.h"

/* What changed from version to version, in builds with the GIL, as compilers lay out CPython's own headers
 * (Include/cpython and Include/internal of each version). From 3.13 on the interpreter has debug offsets, and this
 * table only confirms them. */
static const struct mt_pylayout layouts[] = {
    {.minor = 8, .shape = MT_PY_OBJECTS, .lines = MT_LINES_LNOTAB, .position_unit = 1, .thread_frame = 24,
     .frame_code = 32, .frame_back = 24, .frame_position = 104, .frame_locals = 360, .code_line = 40, .code_file = 104,
     .code_name = 112, .code_lines = 120, .code_bytes = 48},
    {.minor = 9, .shape = MT_PY_OBJECTS, .lines = MT_LINES_LNOTAB, .position_unit = 1, .thread_frame = 24,
     .frame_code = 32, .frame_back = 24, .frame_position = 104, .frame_locals = 360, .code_line = 40, .code_file = 104,
     .code_name = 112, .code_lines = 120, .code_bytes = 48},
    {.minor = 10, .shape = MT_PY_OBJECTS, .lines = MT_LINES_RANGES, .position_unit = 2, .thread_frame = 24,
     .frame_code = 32, .frame_back = 24, .frame_position = 96, .frame_locals = 352, .code_line = 40, .code_file = 104,
     .code_name = 112, .code_lines = 120, .code_bytes = 48},
    {.minor = 11, .shape = MT_PY_FLAGGED, .thread_frame = 56, .chain_frame = 8, .frame_code = 32, .frame_back = 48,
     .frame_position = 56, .frame_owner = 69, .frame_entry = 68, .frame_locals = 72, .code_line = 72,
     .code_bytes = 184},
    {.minor = 12, .shape = MT_PY_SHIMMED, .thread_frame = 56, .chain_frame = 0, .frame_back = 8, .frame_position = 56,
     .frame_owner = 70, .frame_locals = 72, .code_line = 68, .code_version = 92, .code_bytes = 192},
    {.minor = 13, .shape = MT_PY_SHIMMED, .thread_frame = 72, .frame_back = 8, .frame_position = 56, .frame_owner = 70,
     .frame_locals = 72, .code_line = 68, .code_version = 92, .code_bytes = 200},
    {.minor = 14, .shape = MT_PY_SHIMMED, .thread_frame = 72, .frame_back = 8, .frame_position = 56, .frame_owner = 74,
     .frame_locals = 80, .code_line = 68, .code_version = 92, .code_bytes = 208},
    {.minor = 15, .shape = MT_PY_SHIMMED, .thread_frame = 72, .frame_back = 8, .frame_position = 56, .frame_owner = 74,
     .frame_locals = 80, .code_line = 68, .code_version = 92, .code_bytes = 208},
};

/* Fields that many versions share. */
static void complete(struct mt_pylayout *l) {
  if (l->minor >= 11) {
    l->lines = MT_LINES_LOCATIONS;
    l->position_unit = 1;
    l->code_file = 112;
    l->code_name = 120;
    l->code_qualname = 128;
    l->code_lines = 136;
  }
  l->object_type = 8;
  l->kind_bit = 2;
  l->text_length = l->bytes_length = 16;
  l->text_state = l->bytes_data = 32;
  l->text_ascii = l->minor >= 12 ? 40 : 48;
  l->text_compact = l->minor >= 12 ? 56 : 72;
  l->type_flags = 168;
}

/* The offsets of _Py_DebugOffsets, the first member of _PyRuntime, that are needed: a row of words that changes with
 * every minor version (CPython, Include/internal/pycore_runtime.h in 3.13, pycore_debug_offsets.h from 3.14 on). 0:
 * missing. */
struct debug_offsets {
  uint16_t thread_frame, frame_back, frame_code, frame_position, frame_locals, frame_owner, frame_tlbc_index;
  uint16_t code_file, code_name, code_qualname, code_lines, code_line, code_bytes, code_tlbc;
  uint16_t bytes_length, bytes_data, text_state, text_length, text_ascii;
};

static const struct debug_offsets debug_offsets_by_version[] = {
    {184, 232, 240, 248, 256, 264, 0, 280, 288, 296, 304, 312, 344, 0, 520, 528, 544, 552, 560},
    {208, 256, 264, 272, 280, 288, 304, 320, 328, 336, 344, 352, 384, 392, 600, 608, 624, 632, 640},
    {208, 320, 328, 336, 344, 352, 368, 384, 392, 400, 408, 416, 448, 456, 696, 704, 720, 728, 736},
};

#define MT_DEBUG_OFFSETS_FROM 13u /* the first version that has debug offsets */

static uint16_t word_at(const void *runtime, uint16_t offset) {
  uint64_t word;
  if (!offset) return 0;
  memcpy(&word, (const char *)runtime + offset, sizeof word);
  return word < UINT16_MAX ? (uint16_t)word : UINT16_MAX;
}

static void read_debug_offsets(struct mt_pylayout *l, const void *runtime) {
  const struct debug_offsets *d = &debug_offsets_by_version[l->minor - MT_DEBUG_OFFSETS_FROM];
  l->thread_frame = word_at(runtime, d->thread_frame);
  l->frame_back = word_at(runtime, d->frame_back);
  l->frame_code = word_at(runtime, d->frame_code);
  l->frame_position = word_at(runtime, d->frame_position);
  l->frame_locals = word_at(runtime, d->frame_locals);
  l->frame_owner = word_at(runtime, d->frame_owner);
  l->frame_tlbc_index = l->free_threaded ? word_at(runtime, d->frame_tlbc_index) : 0;
  l->code_file = word_at(runtime, d->code_file);
  l->code_name = word_at(runtime, d->code_name);
  l->code_qualname = word_at(runtime, d->code_qualname);
  l->code_lines = word_at(runtime, d->code_lines);
  l->code_line = word_at(runtime, d->code_line);
  l->code_bytes = word_at(runtime, d->code_bytes);
  l->code_tlbc = l->free_threaded ? word_at(runtime, d->code_tlbc) : 0;
  l->bytes_length = word_at(runtime, d->bytes_length);
  l->bytes_data = word_at(runtime, d->bytes_data);
  l->text_state = word_at(runtime, d->text_state);
  l->text_length = word_at(runtime, d->text_length);
  l->text_ascii = word_at(runtime, d->text_ascii);
}

/* A free-threaded build has larger object headers, which move all later fields. Its debug offsets are checked against
 * each other: the compact string is the ASCII string plus two words, and so on. */
static void complete_free_threaded(struct mt_pylayout *l) {
  l->object_type = 24;
  l->type_flags = 184;
  l->text_compact = l->text_ascii + 16;
  l->code_version = l->code_version ? l->code_version + 16 : 0;
  l->kind_bit = l->minor >= 14 ? 8 : 2;
}

static bool plausible(const struct mt_pylayout *l) {
  return l->frame_code == 0 && l->frame_back == 8 && l->frame_position % 8 == 0 && l->frame_position < 128 &&
         l->frame_owner > l->frame_position && l->frame_owner < l->frame_locals && l->frame_locals < 160 &&
         l->code_name == l->code_file + 8 && l->code_qualname == l->code_name + 8 &&
         l->code_lines == l->code_qualname + 8 && l->code_line < l->code_file && l->code_bytes > l->code_lines &&
         l->code_bytes < 512 && l->thread_frame < 512 && l->bytes_data == l->bytes_length + 16 &&
         l->text_length < l->text_state && l->text_state < l->text_ascii && l->text_ascii < 128;
}

const char *mt_pylayout_find(struct mt_pylayout *layout, uint32_t version, const void *runtime) {
  unsigned major = version >> 24, minor = version >> 16 & 0xff;
  if (major != 3 || minor < MT_PYTHON_OLDEST || minor > MT_PYTHON_NEWEST) return "this version of Python is not known";
  *layout = layouts[minor - MT_PYTHON_OLDEST];
  complete(layout);
  if (minor < MT_DEBUG_OFFSETS_FROM) return NULL;
  uint64_t head[3]; /* cookie, version, whether it is a build without the interpreter lock */
  memcpy(head, runtime, sizeof head);
  if (memcmp(&head[0], "xdebugpy", 8) || head[1] != version || head[2] > 1)
    return "the interpreter does not describe itself";
  const struct mt_pylayout known = *layout;
  layout->free_threaded = head[2];
  read_debug_offsets(layout, runtime);
  if (layout->free_threaded) complete_free_threaded(layout);
  if (!plausible(layout) || (!layout->free_threaded && memcmp(layout, &known, sizeof known)))
    return "the interpreter's layout is not the one that its version is known for";
  return NULL;
}
