/* Reading one frame of a Python stack: what a walk notes of it (python.c), and what it is compared by (pymemo.c).
 * Internal to the Python walker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/saferead.h"
#include "python/interpreter.h"
#include "python/pycode.h"
#include "python/python.h"

#define MT_PYFRAME static inline __attribute__((always_inline))

/* Frames that belong to C code, where the interpreter is entered, have an owner from here on. */
#define MT_PY_OWNER_C 3u

/* From 3.14 on a frame's words carry flags in their lowest bits; objects lie at multiples of 16, or of 8 at least. */
#define MT_PY_FLAGS 7ull

/* A walk through memory: checked until the interpreter is trusted. */
struct mt_pywalk {
  const struct mt_pylayout *layout;
  const char *wrong; /* what was found that cannot be, NULL nothing */
};

/* The number in size bytes at an address; little-endian, as all builds are. */
MT_PYFRAME uint64_t mt_pyframe_read(struct mt_pywalk *w, uintptr_t at, size_t size, bool checked) {
  uint64_t value = 0;
  if (!checked) memcpy(&value, (const void *)at, size);
  else if (!mt_safe_read(&value, at, size)) w->wrong = "a frame points to memory that cannot be read";
  return value;
}

MT_PYFRAME uint64_t mt_pyframe_word(struct mt_pywalk *w, uintptr_t at, bool checked) {
  return mt_pyframe_read(w, at, sizeof(uint64_t), checked);
}
MT_PYFRAME uint32_t mt_pyframe_half(struct mt_pywalk *w, uintptr_t at, bool checked) {
  return (uint32_t)mt_pyframe_read(w, at, sizeof(uint32_t), checked);
}
MT_PYFRAME uint8_t mt_pyframe_byte(struct mt_pywalk *w, uintptr_t at, bool checked) {
  return (uint8_t)mt_pyframe_read(w, at, sizeof(uint8_t), checked);
}

/* Two code objects that lie at one address one after the other differ in one of these: from 3.12 on each has a number
 * of its own; before that they share a name, a file, a table and a first line only by chance, and pycode.c looks closer
 * where that may happen. Name and file are told by the objects that they are, which mostly stay: in linecache, in the
 * module, as an attribute's name. */
MT_PYFRAME uint64_t mt_pyframe_identity(struct mt_pywalk *w, uintptr_t code, bool checked) {
  const struct mt_pylayout *l = w->layout;
  uint64_t name = mt_pyframe_word(w, code + l->code_name, checked),
           lines = mt_pyframe_word(w, code + l->code_lines, checked);
  uint64_t own = mt_pyframe_half(w, code + l->code_line, checked);
  if (l->code_version) own |= (uint64_t)mt_pyframe_half(w, code + l->code_version, checked) << 32;
  else own ^= mt_pyframe_word(w, code + l->code_file, checked) << 8;
  return (name + (lines << 23 | lines >> 41)) * 0x9E3779B97F4A7C15ull ^ own * 0xC2B2AE3D27D4EB4Full;
}

/* Where the frame stands in its bytecode, as an address in the code object; where frames are objects, as the number
 * they keep. */
MT_PYFRAME uint64_t mt_pyframe_position(struct mt_pywalk *w, uintptr_t frame, uintptr_t code, enum mt_pyshape shape,
                                        bool free_threaded, bool checked) {
  const struct mt_pylayout *l = w->layout;
  if (shape == MT_PY_OBJECTS) return mt_pyframe_half(w, frame + l->frame_position, checked);
  uint64_t at = mt_pyframe_word(w, frame + l->frame_position, checked);
  if (!free_threaded || !l->code_tlbc) return at;
  uint32_t index =
      mt_pyframe_half(w, frame + l->frame_tlbc_index,
                      checked); /* copies: their number, then addresses; the first is the code object's own */
  if (!index) return at;
  uintptr_t copies = mt_pyframe_word(w, code + l->code_tlbc, checked);
  return at - mt_pyframe_word(w, copies + 8 + 8ull * index, checked) + code + l->code_bytes;
}

/* The module that the frame calls, for code objects that are known to. */
MT_PYFRAME uint64_t mt_pyframe_called_module(struct mt_pywalk *w, uintptr_t frame, const struct mt_pyraw *raw,
                                             bool checked) {
  for (unsigned i = 0; i < MT_PY_MODULE_CALLS; i++) {
    uint64_t known = __atomic_load_n(&mt_module_calls[i].code, __ATOMIC_ACQUIRE);
    if (!known) return 0;
    if (known == (raw->code & ~1ull) && mt_module_calls[i].identity == raw->identity)
      return mt_pyframe_word(w, frame + w->layout->frame_locals, checked) & ~MT_PY_FLAGS;
  }
  return 0;
}

MT_PYFRAME bool mt_pyframe_is_shim(struct mt_pywalk *w, uintptr_t frame, enum mt_pyshape shape, bool checked) {
  return shape == MT_PY_SHIMMED && mt_pyframe_byte(w, frame + w->layout->frame_owner, checked) >= MT_PY_OWNER_C;
}

