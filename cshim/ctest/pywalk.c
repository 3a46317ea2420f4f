/* The Python walker as a library that an interpreter loads with ctypes: pywalk.py compares what it finds with what the
 * interpreter says. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "process/recorder.h"
#include "pylibrary.h"
#include "python/interpreter.h"
#include "python/python.h"
#include "spool/dict.h"
#include "spool/module.h"

extern int __asan_report_present(void) __attribute__((weak));

static uint64_t asked, found; /* stacks, in all */
static pid_t walking;         /* the process with threads that walk until its end */

static void pause_a_moment(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

/* Lets threads that the interpreter left behind go wrong before the process is gone: they walk on so often. One that
 * did go wrong may say so. */
__attribute__((destructor)) static void linger(void) {
  uint64_t enough = __atomic_load_n(&asked, __ATOMIC_RELAXED) + 1000;
  while (walking == getpid() && __atomic_load_n(&asked, __ATOMIC_RELAXED) < enough) pause_a_moment();
  while (__asan_report_present && __asan_report_present()) pause_a_moment();
}

MT_EXPORT int pywalk_state(void) { return (int)mt_interpreter_state(); }

/* Ends the trial in which every read is checked, so that tests reach the direct reads at once. */
MT_EXPORT void pywalk_trust(int trusted) {
  uint32_t from = trusted ? MT_PY_CHECKED : MT_PY_TRUSTED;
  __atomic_compare_exchange_n(&mt_interpreter.state, &from, trusted ? MT_PY_TRUSTED : MT_PY_CHECKED, false,
                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static uint64_t remembered, different; /* found by comparing; another one than a walk finds */

/* One stack may have two numbers: two threads wrote it at once, or its modules became known in between. */
static bool same_stack(uint32_t a, uint32_t b) {
  if (!a || !b || a == b) return a == b;
  const struct mt_index_entry *one = &mt_index()[a - 1], *other = &mt_index()[b - 1];
  return one->length == other->length && !memcmp(mt_data() + one->offset, mt_data() + other->offset, one->length);
}

/* Like a hook, so often that the last time should find what the others left: the second one comes after another stack
 * than the first. */
static void compare_captured(struct mt_thread *self, uint32_t id) {
  for (unsigned i = 0; i < 3; i++) {
    uint32_t walks = self->pywalks, captured = mt_python_capture(self, MT_PYTHON_MAX);
    if (!same_stack(captured, id)) __atomic_add_fetch(&different, 1, __ATOMIC_RELAXED);
    else if (walks == self->pywalks) __atomic_add_fetch(&remembered, 1, __ATOMIC_RELAXED);
  }
}

/* The calling thread's stack as a dictionary id, 0 without one. */
MT_EXPORT uint32_t pywalk_stack(unsigned depth) {
  struct mt_pyraw frames[MT_PYTHON_MAX];
  enum mt_stack_end end;
  struct mt_thread *self = mt_thread_get();
  __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
  if (!self) return 0;
  mt_thread_capture_begin(self);
  unsigned count = mt_python_walk(frames, depth, &end);
  uint32_t id = count ? mt_python_intern(frames, count, end) : 0;
  if (id) __atomic_add_fetch(&found, 1, __ATOMIC_RELAXED);
  if (id && depth == MT_PYTHON_MAX && mt_interpreter_state() == MT_PY_TRUSTED) compare_captured(self, id);
  mt_thread_capture_end(self);
  return id;
}

/* Like a thread of a framework that never comes back to Python. */
MT_EXPORT void pywalk_forever(void) {
  __atomic_store_n(&walking, getpid(), __ATOMIC_RELAXED);
  for (;;) pywalk_stack(MT_PYTHON_MAX);
}

MT_EXPORT uint64_t pywalk_asked(void) { return __atomic_load_n(&asked, __ATOMIC_RELAXED); }
MT_EXPORT uint64_t pywalk_remembered(void) { return __atomic_load_n(&remembered, __ATOMIC_RELAXED); }
MT_EXPORT uint64_t pywalk_different(void) { return __atomic_load_n(&different, __ATOMIC_RELAXED); }
MT_EXPORT uint64_t pywalk_found(void) { return __atomic_load_n(&found, __ATOMIC_RELAXED); }

/* ctypes turns a callback's exceptions into messages: this stands for C code between frames. */
MT_EXPORT uint32_t pywalk_through(uint32_t (*callback)(void)) { return callback() + 0; }

MT_EXPORT uint64_t pywalk_lost(void) { return mt_header()->lost_dict; }
MT_EXPORT void pywalk_turn(void) { mt_python_poll(); }
MT_EXPORT void pywalk_restart(void) { mt_python_start(); }

MT_EXPORT void pywalk_log(int level) { mt_config.log_level = level; }

/* Makes the walker look for one thing in a wrong place. */
MT_EXPORT void pywalk_misread(unsigned field) {
  struct mt_pylayout *l = &mt_interpreter.layout;
  uint16_t *fields[] = {&l->thread_frame, &l->frame_code,  &l->frame_back, &l->frame_position, &l->code_name,
                        &l->code_lines,   &l->object_type, &l->code_bytes, &l->code_line,      &l->code_file};
  *fields[field] = (uint16_t)(*fields[field] + (fields[field] == &l->code_line ? 4 : 8));
}

/* A module was met, by an address inside it; modules were unloaded. */
MT_EXPORT void pywalk_look(uintptr_t inside) { mt_python_module_loaded(mt_module_find(inside)); }
MT_EXPORT void pywalk_forget(void) { mt_python_check_unloaded(); }

/* Fills the dictionary. */
MT_EXPORT void pywalk_fill(void) {
  static char block[1 << 20];
  for (size_t size = sizeof block; size; size /= 2)
    while (mt_dict_append(MT_DICT_STRING, &(struct mt_bytes){block, size}, 1)) continue;
}
