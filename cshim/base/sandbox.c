#define _GNU_SOURCE
#include "base/sandbox.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

#define MT_SECCOMP_FILTER 2

struct filters {
  bool readable;
  long mode;  /* 0 none, 1 strict, 2 filter; -1 on kernels without seccomp */
  long count; /* -1 where the kernel does not tell (before 5.9) */
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

/* A filter that the parent has, too, was there before the program ran. The first process of a container has no parent
 * to compare with: there one filter is the container's. */
enum mt_sandbox mt_sandbox_kind(void) {
  long parent = -1;
  struct filters own = filters_of("/proc/thread-self/status", &parent);
  if (!own.readable) return MT_SANDBOX_OWN;
  if (own.mode <= 0) return MT_SANDBOX_NONE;
  if (own.mode != MT_SECCOMP_FILTER) return MT_SANDBOX_OWN;
  if (parent <= 0) return own.count == 1 ? MT_SANDBOX_INHERITED : MT_SANDBOX_OWN;
  struct filters outer = filters_of_process(parent);
  return outer.mode == MT_SECCOMP_FILTER && own.count <= outer.count ? MT_SANDBOX_INHERITED : MT_SANDBOX_OWN;
}
