#define _GNU_SOURCE
#include "process/initialstack.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/config.h"
#include "base/log.h"
#include "spool/output.h"
#include "spool/region.h"

enum { AUXV_WORDS = 16 };

void *mt_initial_stack[MT_INITIAL_ARGV + 15 + AUXV_WORDS];

static char spool_variable[MT_PATH_MAX + 32], trace_variable[MT_PATH_MAX + 32], log_variable[32], stderr_variable[64],
    oom_variable[32];
static char guest_memory_variable[64], trace_max_variable[64], embed_symbols_variable[64];
static char spool_file_variable[32 + MT_FILE_TEXT], trace_file_variable[32 + MT_FILE_TEXT];

static char *variable(char *buffer, const char *name, const char *value) {
  char *p = stpcpy(buffer, name);
  stpcpy(p, value);
  return buffer;
}

static char *number_variable(char *buffer, const char *name, uint64_t value) {
  char digits[24], *p = digits + sizeof digits - 1;
  *p = 0;
  do *--p = (char)('0' + value % 10);
  while (value /= 10);
  return variable(buffer, name, p);
}

/* The entries of the auxiliary vector that the Go runtime reads. The C library's copy is the program's: /proc has the
 * kernel's, and under valgrind the copy lacks the vDSO, and the mapping as well. */
static void **add_auxv(void **word) {
  static const unsigned long wanted[] = {AT_PAGESZ, AT_HWCAP, AT_HWCAP2, AT_SECURE, AT_RANDOM, AT_SYSINFO_EHDR};
  int error = errno;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    errno = 0;
    unsigned long value = getauxval(wanted[i]);
    if (!value && errno) continue;
    *word++ = (void *)wanted[i];
    *word++ = (void *)value;
  }
  errno = error;
  return word;
}

void mt_initial_stack_build(void) {
  static const char *const levels[] = {"off", "error", "warn", "info", "debug"};
  static const char *const oom_texts[] = {"none", "failed", "all"};
  char file[MT_FILE_TEXT];
  void **word = mt_initial_stack;
  *word++ = "memtrace";
  *word++ = NULL;
  *word++ = "GODEBUG=asyncpreemptoff=1,updatemaxprocs=0,containermaxprocs=0";
  *word++ = "GOTRACEBACK=none";
  *word++ = "GOMAXPROCS=2";
  *word++ = variable(spool_variable, "MEMTRACE_DRAIN_SPOOL=", mt_region.real_path);
  *word++ = variable(trace_variable, "MEMTRACE_DRAIN_TRACE=", mt_region.output.trace);
  *word++ = variable(spool_file_variable, "MEMTRACE_DRAIN_SPOOL_FILE=",
                     mt_output_file_text(file, mt_region.device, mt_region.inode, mt_region.owner));
  *word++ =
      variable(trace_file_variable, "MEMTRACE_DRAIN_TRACE_FILE=",
               mt_output_file_text(file, mt_region.output.device, mt_region.output.inode, mt_region.output.owner));
  *word++ = variable(log_variable, "MEMTRACE_LOG=", levels[mt_config.log_level]);
  *word++ = variable(stderr_variable, "MEMTRACE_STDERR=", mt_log_stderr());
  *word++ = variable(oom_variable, "MEMTRACE_OOM=", oom_texts[mt_config.oom]);
  *word++ = number_variable(guest_memory_variable, "MEMTRACE_GUEST_MEMORY=", mt_config.guest_memory);
  *word++ = number_variable(trace_max_variable, "MEMTRACE_TRACE_MAX=", mt_config.trace_max);
  *word++ = number_variable(embed_symbols_variable, "MEMTRACE_EMBED_SYMBOLS=", mt_config.embed_symbols_ms);
  *word++ = mt_config.force ? "MEMTRACE_FORCE=1" : "MEMTRACE_FORCE=0";
  *word++ = NULL;
  *add_auxv(word) = NULL;
}
