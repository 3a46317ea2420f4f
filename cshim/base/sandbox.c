#define _GNU_SOURCE
#include "base/sandbox.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

#define MT_SECCOMP_FILTER 2
#define MT_FIRST_NUMBERS 0xeffffffcu /* inode of the initial pid namespace (PROC_PID_INIT_INO, linux/proc_ns.h) */

struct filters {
  bool readable;
  long mode;  /* 0 none, 1 strict, 2 filter; -1 on kernels without seccomp */
  long count; /* -1 before Linux 5.9, which lacks the field */
};

/* Names begin with a newline, since fields begin a line. */
static long field(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static struct filters filters_of(const char *path, long *parent) {
  char text[4096];
  if (mt_sys_read_file(path, text, sizeof text) <= 0) return (struct filters){false, -1, -1};
  if (parent) *parent = field(text, "\nPPid:");
  return (struct filters){true, field(text, "\nSeccomp:"), field(text, "\nSeccomp_filters:")};
}

static struct filters filters_of_process(long pid) {
  char path[48], digits[24];
  size_t i = sizeof digits;
  digits[--i] = 0;
  do digits[--i] = (char)('0' + pid % 10), pid /= 10;
  while (pid > 0 && i);
  stpcpy(stpcpy(stpcpy(path, "/proc/"), digits + i), "/status");
  return filters_of(path, NULL);
}

/* A container has a pid namespace of its own. */
static bool in_container(void) {
  struct stat numbers;
  return !mt_sys_stat("/proc/thread-self/ns/pid", &numbers) && numbers.st_ino != MT_FIRST_NUMBERS;
}

/* A filter that the parent has, too, was installed before the program ran. The first process of a container has no
 * parent to compare with: there a single filter is the container's. */
enum mt_sandbox mt_sandbox_kind(void) {
  long parent = -1;
  struct filters own = filters_of("/proc/thread-self/status", &parent);
  if (!own.readable) return MT_SANDBOX_OWN;
  if (own.mode <= 0) return MT_SANDBOX_NONE;
  if (own.mode != MT_SECCOMP_FILTER) return MT_SANDBOX_OWN;
  if (parent <= 0) return own.count == 1 ? MT_SANDBOX_CONTAINER : MT_SANDBOX_OWN;
  struct filters outer = filters_of_process(parent);
  if (outer.mode != MT_SECCOMP_FILTER || own.count > outer.count) return MT_SANDBOX_OWN;
  return in_container() ? MT_SANDBOX_CONTAINER : MT_SANDBOX_SERVICE;
}
