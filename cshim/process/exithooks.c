#define _GNU_SOURCE
/* exit() runs handlers and destructors, quick_exit() handlers of its own, _exit() and _Exit() nothing: Python's
 * os._exit, and with it every worker process of its multiprocessing, ends by the last. After each of them the trace is
 * whole. abort() and fatal signals are left alone: the spool holds everything.
 *
 * _exit may be called in a signal handler, while other threads record, and in a vfork child, which shares this memory:
 * mt_recorder_end is made for that, and nothing here looks up a symbol then. */
#include "process/exithooks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/atload.h"
#include "base/config.h"
#include "base/sys.h"
#include "device/sampler.h"
#include "hooks/original.h"
#include "hooks/unhooked.h"
#include "process/control.h"
#include "process/recorder.h"

typedef void (*exit_function)(int status);

static exit_function next_exit MT_AT_LOAD, next_Exit MT_AT_LOAD;

/* Handlers without an owner, which are not run when an object is unloaded. Those of on_exit get the status and share
 * one list with those of atexit. musl has only the first. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *owner);
extern int on_exit(void (*function)(int status, void *argument), void *argument) __attribute__((weak));
extern int __cxa_at_quick_exit(void (*function)(void *), void *owner) __attribute__((weak));

/* A process that recorded nothing, though it used a GPU: warns on stderr, and leaves a trace that notes it. */
static void report_unrecorded(void) {
  const char *how = mt_config.disabled ? NULL : mt_unhooked_check();
  if (!how) return;
  mt_record_exit_note("blind", how);
  mt_log(MT_LOG_WARN, "the program used a GPU past this library, which saw no call: ", how, "");
}

static void at_end(int status, void *unused) {
  (void)unused;
  report_unrecorded();
  mt_control_end();
  mt_recorder_end(status);
}

static void at_exit_without_status(void *unused) {
  at_end(MT_STATUS_UNKNOWN, unused);
}

static void at_quick_end(void *unused) {
  (void)unused;
  mt_sampler_end();
  mt_recorder_end(MT_STATUS_UNKNOWN); /* its handlers do not get the status */
}

/* What is registered first runs last. At this moment the program has registered nothing, and the loader has not
 * registered its own handler, which runs the destructors of all libraries: what they free is still recorded. A
 * destructor of this library would run before theirs. */
void mt_exit_hooks_init(void) {
  if (on_exit) on_exit(at_end, NULL);
  else __cxa_atexit(at_exit_without_status, NULL, NULL);
  if (__cxa_at_quick_exit) __cxa_at_quick_exit(at_quick_end, NULL);
  next_exit = (exit_function)mt_original_dlsym(RTLD_NEXT, "_exit");
  next_Exit = (exit_function)mt_original_dlsym(RTLD_NEXT, "_Exit");
}

static void end_and_call(exit_function next, int status) {
  mt_control_end();
  mt_sampler_end(); /* exit() has taken the last sample by now, or it is too late for it */
  mt_recorder_end(status);
  if (next) next(status);
  mt_sys_exit_group(status);
}

MT_EXPORT void _exit(int status) {
  end_and_call(next_exit, status);
  __builtin_unreachable();
}

MT_EXPORT void _Exit(int status) {
  end_and_call(next_Exit, status);
  __builtin_unreachable();
}
