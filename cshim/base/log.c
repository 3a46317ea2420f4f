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
static void write_without_sigpipe(int fd, const struct iovec *parts, int count) {
  const uint64_t pipe_only = MT_SYS_SIGNAL(SIGPIPE), before = mt_sys_block(pipe_only);
  uint64_t pending = 0;
  mt_sys(SYS_rt_sigpending, &pending, sizeof pending);
  if (mt_sys_writev(fd, parts, count) < 0 && errno == EPIPE && !(pending & pipe_only))
    mt_sys(SYS_rt_sigtimedwait, &pipe_only, NULL, &(struct timespec){0}, sizeof pipe_only);
  mt_sys_set_blocked(before);
}

static struct stat stderr_at_load MT_AT_LOAD; /* st_ino 0: there was none */

/* Taken at load, 0.2 us for every process, since a daemon may reuse descriptor 2 long before its first CUDA call. In a
 * program that redirects its own messages the library's are lost: better than a line in the middle of its data. */
static bool stderr_is_original(void) {
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

/* A character of UTF-8, 0 if there is none; its bytes to *length. */
static uint32_t decode(const unsigned char *text, unsigned *length) {
  uint32_t lead = text[0], value;
  *length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (!*length) return *length = 1, 0;
  value = *length == 1 ? lead : lead & (0x7fu >> *length);
  for (unsigned i = 1; i < *length; i++) {
    if ((text[i] & 0xc0) != 0x80) return *length = 1, 0;
    value = value << 6 | (text[i] & 0x3f);
  }
  return value;
}

/* Control characters, bidirectional formatting, and zero-width characters: a terminal obeys them, or shows another
 * line. */
static bool is_printable(uint32_t value) {
  static const struct {
    uint32_t first, last;
  } hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e},
                {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xd800, 0xf8ff}, {0xfeff, 0xfeff},
                {0xfff9, 0xfffb}, {0xe0000, UINT32_MAX}};
  for (unsigned i = 0; i < sizeof hidden / sizeof *hidden; i++)
    if (value >= hidden[i].first && value <= hidden[i].last) return false;
  return true;
}

static char *put_hex(char *at, uint32_t value, int digits) {
  while (digits--) *at++ = "0123456789abcdef"[value >> 4 * digits & 15];
  return at;
}

size_t mt_log_escape(char *to, const char **text) {
  unsigned length;
  uint32_t value = decode((const unsigned char *)*text, &length);
  const char *from = *text;
  *text += length;
  if (is_printable(value)) return memcpy(to, from, length), length;
  bool wide = value >= 0x80;
  char *at = stpcpy(to, !wide ? "\\x" : value > 0xffff ? "\\U" : "\\u");
  at = put_hex(at, wide ? value : (unsigned char)*from, !wide ? 2 : value > 0xffff ? 8 : 4);
  return (size_t)(at - to);
}

/* A line that is longer is written in pieces: there is no room for it on a small stack. */
void mt_log(enum mt_log_level level, const char *a, const char *b, const char *c) {
  if ((int)level > mt_config.log_level) return;
  int error = errno;
  char line[1024];
  size_t used = (size_t)(stpcpy(line, "memtrace: ") - line);
  const char *parts[] = {a, b, c};
  if (stderr_is_original()) {
    for (unsigned i = 0; i < 3; i++)
      for (const char *text = parts[i]; *text;) {
        used += mt_log_escape(line + used, &text);
        if (used < sizeof line - MT_LOG_CHARACTER - 1) continue;
        write_without_sigpipe(STDERR_FILENO, &(struct iovec){line, used}, 1);
        used = 0;
      }
    line[used++] = '\n';
    write_without_sigpipe(STDERR_FILENO, &(struct iovec){line, used}, 1);
  }
  errno = error;
}

void mt_log_init(void) {
  if (mt_sys_fstat(STDERR_FILENO, &stderr_at_load)) stderr_at_load.st_ino = 0;
}
