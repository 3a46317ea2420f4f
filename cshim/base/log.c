#define _GNU_SOURCE
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atload.h"
#include "base/config.h"
#include "base/sys.h"

/* Writes to a pipe that may be broken, without the signal: it would end a program that never wrote there itself. */
static void write_quietly(int fd, const struct iovec *parts, int count) {
  const uint64_t pipe_only = MT_SYS_SIGNAL(SIGPIPE), before = mt_sys_block(pipe_only);
  uint64_t pending = 0;
  mt_sys(SYS_rt_sigpending, &pending, sizeof pending);
  if (mt_sys_writev(fd, parts, count) < 0 && errno == EPIPE && !(pending & pipe_only))
    mt_sys(SYS_rt_sigtimedwait, &pipe_only, NULL, &(struct timespec){0}, sizeof pipe_only);
  mt_sys_set_blocked(before);
}

static struct stat stderr_at_load MT_AT_LOAD; /* st_ino 0: there was none */

/* Taken at load, at 0.2 us for every process, since a program that turns itself into a service reuses the number long
 * before its first CUDA call. One that redirects its own messages loses ours with it: better than a line in the middle
 * of its data. */
static bool stderr_is_the_users(void) {
  struct stat now;
  return stderr_at_load.st_ino && !mt_sys_fstat(STDERR_FILENO, &now) && now.st_ino == stderr_at_load.st_ino &&
         now.st_dev == stderr_at_load.st_dev;
}

char *mt_put_number(char *at, uint64_t n) {
  char digits[24];
  int i = sizeof digits;
  digits[--i] = 0;
  do digits[--i] = (char)('0' + n % 10), n /= 10;
  while (n);
  return stpcpy(at, digits + i);
}

const char *mt_log_stderr(void) {
  static char text[48];
  if (stderr_at_load.st_ino)
    mt_put_number(stpcpy(mt_put_number(text, stderr_at_load.st_dev), ":"), stderr_at_load.st_ino);
  return text;
}

void mt_log(enum mt_log_level level, const char *a, const char *b, const char *c) {
  if ((int)level > mt_config.log_level) return;
  int error = errno;
  static const char prefix[] = "memtrace: ", end[] = "\n";
  struct iovec parts[5] = {{(void *)prefix, sizeof prefix - 1},
                           {(void *)a, strlen(a)},
                           {(void *)b, strlen(b)},
                           {(void *)c, strlen(c)},
                           {(void *)end, 1}};
  if (stderr_is_the_users()) write_quietly(STDERR_FILENO, parts, 5);
  errno = error;
}

void mt_log_prepare(void) {
  if (mt_sys_fstat(STDERR_FILENO, &stderr_at_load)) stderr_at_load.st_ino = 0;
}
