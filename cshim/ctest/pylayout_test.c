/* The offsets that pylayout.c knows against the interpreter's own headers: compiled once for every version whose
 * headers are at hand. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>

#include "python/pylayout.h"

#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_runtime.h>
#endif

static unsigned passed, failed;

static void equal(unsigned have, size_t want, const char *what) {
  if (have == want) passed++;
  else {
    failed++;
    fprintf(stderr, "%s is %u, want %zu\n", what, have, want);
  }
}

#define AT(have, type, member) equal(l.have, offsetof(type, member), #have)

static int bit_of(PyASCIIObject *text) {
  unsigned word;
  memcpy(&word, &text->state, sizeof word);
  return __builtin_ctz(word);
}

#if PY_VERSION_HEX >= 0x030d0000
/* What the interpreter says of itself when it runs, as far as it is read. */
static _Py_DebugOffsets describe(void) {
  _Py_DebugOffsets d = {.cookie = "xdebugpy", .version = PY_VERSION_HEX};
#ifdef Py_GIL_DISABLED
  d.free_threaded = 1;
#endif
  d.thread_state.current_frame = offsetof(PyThreadState, current_frame);
  d.interpreter_frame.previous = offsetof(_PyInterpreterFrame, previous);
  d.interpreter_frame.executable = offsetof(_PyInterpreterFrame, f_executable);
  d.interpreter_frame.instr_ptr = offsetof(_PyInterpreterFrame, instr_ptr);
  d.interpreter_frame.localsplus = offsetof(_PyInterpreterFrame, localsplus);
  d.interpreter_frame.owner = offsetof(_PyInterpreterFrame, owner);
#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030e0000
  d.interpreter_frame.tlbc_index = offsetof(_PyInterpreterFrame, tlbc_index);
  d.code_object.co_tlbc = offsetof(PyCodeObject, co_tlbc);
#endif
  d.code_object.filename = offsetof(PyCodeObject, co_filename);
  d.code_object.name = offsetof(PyCodeObject, co_name);
  d.code_object.qualname = offsetof(PyCodeObject, co_qualname);
  d.code_object.linetable = offsetof(PyCodeObject, co_linetable);
  d.code_object.firstlineno = offsetof(PyCodeObject, co_firstlineno);
  d.code_object.co_code_adaptive = offsetof(PyCodeObject, co_code_adaptive);
  d.bytes_object.ob_size = offsetof(PyBytesObject, ob_base.ob_size);
  d.bytes_object.ob_sval = offsetof(PyBytesObject, ob_sval);
  d.unicode_object.state = offsetof(PyASCIIObject, state);
  d.unicode_object.length = offsetof(PyASCIIObject, length);
  d.unicode_object.asciiobject_size = sizeof(PyASCIIObject);
  return d;
}
#endif

int main(void) {
  struct mt_pylayout l;
  const void *runtime = NULL;
#if PY_VERSION_HEX >= 0x030d0000
  const _Py_DebugOffsets offsets = describe();
  runtime = &offsets;
#endif
  const char *why = mt_pylayout_find(&l, PY_VERSION_HEX, runtime);
  equal(why != NULL, 0, why ? why : "found");
#if PY_VERSION_HEX >= 0x030b0000
  AT(frame_back, _PyInterpreterFrame, previous);
  AT(frame_owner, _PyInterpreterFrame, owner);
  AT(frame_locals, _PyInterpreterFrame, localsplus);
  AT(code_qualname, PyCodeObject, co_qualname);
  AT(code_lines, PyCodeObject, co_linetable);
  AT(code_bytes, PyCodeObject, co_code_adaptive);
#else
  AT(thread_frame, PyThreadState, frame);
  AT(frame_code, PyFrameObject, f_code);
  AT(frame_back, PyFrameObject, f_back);
  AT(frame_position, PyFrameObject, f_lasti);
  AT(frame_locals, PyFrameObject, f_localsplus);
  AT(code_bytes, PyCodeObject, co_code);
#if PY_VERSION_HEX >= 0x030a0000
  AT(code_lines, PyCodeObject, co_linetable);
#else
  AT(code_lines, PyCodeObject, co_lnotab);
#endif
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
  AT(thread_frame, PyThreadState, cframe);
  AT(chain_frame, _PyCFrame, current_frame);
  AT(frame_code, _PyInterpreterFrame, f_code);
  AT(frame_position, _PyInterpreterFrame, prev_instr);
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
  AT(frame_entry, _PyInterpreterFrame, is_entry);
#endif
#if PY_VERSION_HEX >= 0x030c0000
  AT(code_version, PyCodeObject, co_version);
#endif
#if PY_VERSION_HEX >= 0x030d0000
  AT(thread_frame, PyThreadState, current_frame);
  AT(frame_code, _PyInterpreterFrame, f_executable);
  AT(frame_position, _PyInterpreterFrame, instr_ptr);
#endif
#ifdef Py_GIL_DISABLED
  equal(l.free_threaded, 1, "a build without the interpreter lock");
#if PY_VERSION_HEX >= 0x030e0000
  AT(frame_tlbc_index, _PyInterpreterFrame, tlbc_index);
  AT(code_tlbc, PyCodeObject, co_tlbc);
#endif
#endif
  AT(code_line, PyCodeObject, co_firstlineno);
  AT(code_file, PyCodeObject, co_filename);
  AT(code_name, PyCodeObject, co_name);
  AT(object_type, PyObject, ob_type);
  AT(type_flags, PyTypeObject, tp_flags);
  AT(text_length, PyASCIIObject, length);
  AT(text_state, PyASCIIObject, state);
  equal(l.text_ascii, sizeof(PyASCIIObject), "text_ascii");
  equal(l.text_compact, sizeof(PyCompactUnicodeObject), "text_compact");
  equal(l.text_compact, offsetof(PyUnicodeObject, data), "data of texts that are not compact");
  AT(bytes_length, PyBytesObject, ob_base.ob_size);
  AT(bytes_data, PyBytesObject, ob_sval);
  equal(l.object_type + 8u, offsetof(PyVarObject, ob_size), "length of objects that vary");
  static PyASCIIObject kind, compact, ascii;
  kind.state.kind = compact.state.compact = ascii.state.ascii = 1;
  equal(l.kind_bit, (size_t)bit_of(&kind), "kind_bit");
  equal(l.kind_bit + 3u, (size_t)bit_of(&compact), "the bit of compact");
  equal(l.kind_bit + 4u, (size_t)bit_of(&ascii), "the bit of ascii");
  printf("headers of %s%s: %u passed, %u failed\n", PY_VERSION, l.free_threaded ? " (free-threaded)" : "", passed,
         failed);
  return failed != 0;
}
