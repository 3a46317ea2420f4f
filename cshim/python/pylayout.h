/* Where CPython keeps what a stack needs: byte offsets of one build of the interpreter. All builds are little-endian
 * with 64-bit pointers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MT_PYTHON_OLDEST 8u  /* 3.8 */
#define MT_PYTHON_NEWEST 15u /* 3.15 */

/* How frames are linked. */
enum mt_pyshape {
  MT_PY_OBJECTS, /* to 3.10: frame objects, each evaluated by a C function of its own */
  MT_PY_FLAGGED, /* 3.11: a flag marks the first frame of each C function */
  MT_PY_SHIMMED, /* from 3.12: a shim frame without code precedes the first one */
};

/* Offsets that a version lacks are 0, which none of these can be. */
struct mt_pylayout {
  uint8_t shape;    /* enum mt_pyshape */
  uint8_t minor;    /* 11: Python 3.11 */
  bool free_threaded;    /* a build without the interpreter lock: code runs from copies of its own for each thread */
  uint8_t lines;    /* enum mt_line_table */
  uint8_t kind_bit; /* of the text's state word: bytes a character, then compact, then ascii, 3, 1 and 1 bits */
  uint8_t position_unit; /* bytes of bytecode for each step of a frame object's position */
  uint16_t thread_frame, chain_frame; /* the thread's innermost frame; from 3.11 to 3.12 its chain, which has it */
  uint16_t frame_code, frame_back, frame_position, frame_owner, frame_entry, frame_locals,
      frame_tlbc_index; /* chain_frame and frame_code may be 0 */
  uint16_t code_line, code_version, code_file, code_name, code_qualname, code_lines, code_bytes,
      code_tlbc; /* code_bytes: to 3.10 a pointer, then the bytecode itself */
  uint16_t object_type;
  uint16_t text_length, text_state, text_ascii, text_compact; /* the last two are sizes: data follow */
  uint16_t bytes_length, bytes_data;
  uint16_t type_flags;
};

/* Finds the layout of that version (0x030b07f0: 3.11.7); runtime points to the interpreter's _PyRuntime. Returns NULL,
 * or why there is none. */
const char *mt_pylayout_find(struct mt_pylayout *layout, uint32_t version, const void *runtime);
