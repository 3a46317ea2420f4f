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

/* Least owner of frames that stand for C code, where the interpreter is entered: FRAME_OWNED_BY_CSTACK, from 3.14 on
 * FRAME_OWNED_BY_INTERPRETER (CPython, enum _frameowner). */
#define MT_PY_OWNER_C 3u

/* From 3.14 on a frame's references are tagged in their lowest bits (_PyStackRef, Include/internal/pycore_stackref.h);
 * objects are aligned to 16 bytes, or 8 at least. */
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

/* Two code objects that have the same address one after the other differ in one of these: from 3.12 on each has a
 * version number (co_version); before that they share name, file, line table and first line only by chance, and
 * pycode.c checks further where that may happen. Name and file are compared by address: these strings mostly stay, in
 * linecache, in the module, as an attribute's name. */
MT_PYFRAME uint64_t mt_pyframe_identity(struct mt_pywalk *w, uintptr_t code, bool checked) {
  const struct mt_pylayout *l = w->layout;
  uint64_t name = mt_pyframe_word(w, code + l->code_name, checked),
           lines = mt_pyframe_word(w, code + l->code_lines, checked);
  uint64_t own = mt_pyframe_half(w, code + l->code_line, checked);
  if (l->code_version) own |= (uint64_t)mt_pyframe_half(w, code + l->code_version, checked) << 32;
  else own ^= mt_pyframe_word(w, code + l->code_file, checked) << 8;
  return (name + (lines << 23 | lines >> 41)) * 0x9E3779B97F4A7C15ull ^ own * 0xC2B2AE3D27D4EB4Full;
}

/* The frame's position in its bytecode, as an address in the code object; where frames are objects, their f_lasti. */
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

