#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

#define MT_NAME_TRIES 10000u

struct text {
  char *at;
  size_t room; /* left, terminator included */
  bool overflow;
};

static void put(struct text *t, const char *s, size_t n) {
  if (n >= t->room) {
    t->overflow = true;
    return;
  }
  memcpy(t->at, s, n);
  t->at += n;
  t->room -= n;
  *t->at = 0;
}

static void put_string(struct text *t, const char *s) { put(t, s, strlen(s)); }

static void put_number(struct text *t, uint64_t n, int width) {
  char digits[24];
  int i = sizeof digits;
  do digits[--i] = (char)('0' + n % 10), n /= 10, width--;
  while (n || width > 0);
  put(t, digits + i, sizeof digits - (size_t)i);
}

/* A value from outside becomes one path component: no separators, no hidden file. */
static void put_component(struct text *t, const char *s) {
  if (*s == '.') put_string(t, "_"), s++;
  for (; *s; s++) put(t, *s == '/' || (unsigned char)*s < 32 ? "_" : s, 1);
}

/* UTC, without the C library's time zone lock. Days to civil date by eras of 400 years. */
static void put_time(struct text *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t days = now.tv_sec / 86400 + 719468;
  int64_t era = days / 146097, doe = days - era * 146097;
  int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
  int64_t month = mp < 10 ? mp + 3 : mp - 9, seconds = now.tv_sec % 86400;
  put_number(t, (uint64_t)(yoe + era * 400 + (month <= 2)), 4);
  put_number(t, (uint64_t)month, 2);
  put_number(t, (uint64_t)(doy - (153 * mp + 2) / 5 + 1), 2);
  put_string(t, "-");
  put_number(t, (uint64_t)seconds / 3600, 2);
  put_number(t, (uint64_t)seconds / 60 % 60, 2);
  put_number(t, (uint64_t)seconds % 60, 2);
}

static void put_rank(struct text *t) {
  static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "MV2_COMM_WORLD_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *v = getenv(names[i]);
    if (v && *v) {
      put_component(t, v);
      return;
    }
  }
  put_string(t, "0");
}

static void put_host(struct text *t) {
  char host[256] = "unknown";
  if (!gethostname(host, sizeof host)) host[sizeof host - 1] = 0;
  put_component(t, host);
}

/* %q{NAME}: the environment variable NAME. Returns the pattern's rest, or NULL if it is not that form. */
static const char *put_variable(struct text *t, const char *p) {
  const char *close = *p == '{' ? strchr(p, '}') : NULL;
  char name[128];
  if (!close || (size_t)(close - p) >= sizeof name) return NULL;
  memcpy(name, p + 1, (size_t)(close - p - 1));
  name[close - p - 1] = 0;
  const char *value = getenv(name);
  if (value) put_component(t, value);
  return close + 1;
}

int mt_output_expand(char *out, size_t room, const char *pattern, unsigned counter) {
  struct text t = {.at = out, .room = room};
  *out = 0;
  for (const char *p = pattern; *p;) {
    if (*p != '%') {
      put(&t, p++, 1);
      continue;
    }
    const char *rest = p + 2;
    switch (p[1]) {
      case 'p': put_number(&t, (uint64_t)getpid(), 0); break;
      case 'e': put_component(&t, program_invocation_short_name); break;
      case 'h': put_host(&t); break;
      case 't': put_time(&t); break;
      case 'r': put_rank(&t); break;
      case 'n': put_number(&t, counter, 0); break;
      case '%': put_string(&t, "%"); break;
      case 'q':
        rest = put_variable(&t, p + 2);
        if (rest) break;
        /* fall through */
      default: /* an unknown placeholder stands for itself */ put_string(&t, "%"); rest = p + 1;
    }
    p = rest;
  }
  return t.overflow ? -1 : 0;
}

static void make_parents(char *path) {
  for (char *p = path + 1; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    mkdir(path, 0777);
    *p = '/';
  }
}

/* "dir/name.bin", 3 -> "dir/name.3.bin" */
static int numbered(char *out, size_t room, const char *path, unsigned number) {
  struct text t = {.at = out, .room = room};
  size_t length = strlen(path);
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  size_t stem = dot && (!slash || dot > slash + 1) ? (size_t)(dot - path) : length;
  put(&t, path, stem);
  put_string(&t, ".");
  put_number(&t, number, 0);
  put(&t, path + stem, length - stem);
  return t.overflow ? -1 : 0;
}

static int reserve_trace(const char *path) {
  int flags = O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
  int fd = -1;
  if (mt_config.force) {
    struct stat s;
    if (!lstat(path, &s) && !S_ISREG(s.st_mode)) return errno = EEXIST, -1; /* never through a link, never a device */
    unlink(path);
  }
  fd = open(path, flags | O_EXCL, 0600);
  if (fd < 0) return -1;
  fchmod(fd, 0600);
  close(fd);
  return 0;
}

static int absolute_pattern(char *out, size_t room) {
  struct text t = {.at = out, .room = room};
  if (mt_config.output[0] != '/') {
    if (!mt_config.start_directory_known) return errno = ENOENT, -1;
    for (const char *p = mt_config.start_directory; *p; p++) put(&t, *p == '%' ? "%%" : p, *p == '%' ? 2 : 1);
    put_string(&t, "/");
  }
  put_string(&t, mt_config.output);
  return t.overflow ? (errno = ENAMETOOLONG, -1) : 0;
}

static int join(char *out, size_t room, const char *a, const char *b, const char *c) {
  struct text t = {.at = out, .room = room};
  put_string(&t, a);
  put_string(&t, b);
  put_string(&t, c);
  return t.overflow ? (errno = ENAMETOOLONG, -1) : 0;
}

/* Takes the pattern's name, or the next free number behind it. */
static int choose_trace(struct mt_output *out, const char **what) {
  static char pattern[MT_PATH_MAX], wanted[MT_PATH_MAX];
  *what = "the output name";
  if (absolute_pattern(pattern, sizeof pattern)) return -1;
  bool counts = strstr(pattern, "%n") != NULL;
  for (unsigned i = 0; i < MT_NAME_TRIES; i++) {
    if (!i || counts) {
      if (mt_output_expand(wanted, sizeof wanted - sizeof ".10000", pattern, i)) return errno = ENAMETOOLONG, -1;
      memcpy(out->trace, wanted, sizeof wanted);
      if (!i) make_parents(out->trace);
    } else if (numbered(out->trace, sizeof out->trace, wanted, i))
      return errno = ENAMETOOLONG, -1;
    if (join(out->spool, sizeof out->spool, out->trace, ".spool", "")) return -1;
    struct stat leftover;
    if (!mt_config.force && !lstat(out->spool, &leftover)) continue; /* a killed run's records: as precious as its trace */
    *what = "creating the trace";
    if (!reserve_trace(out->trace)) {
      if (i && !counts) mt_log(MT_LOG_WARN, wanted, " exists and is kept; this trace goes to ", out->trace);
      return 0;
    }
    if (errno != EEXIST || mt_config.force) return -1;
  }
  return -1;
}

/* With MEMTRACE_SPOOL_DIR the spool lives there under a name that holds our pid, and a link beside the trace leads readers to it. */
static int open_spool(struct mt_output *out) {
  int flags = O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  if (mt_config.force) unlink(out->spool);
  if (!mt_config.spool_dir[0]) return open(out->spool, flags, 0600);
  static char real[MT_PATH_MAX];
  struct text t = {.at = real, .room = sizeof real};
  if (mt_config.spool_dir[0] != '/') {
    if (!mt_config.start_directory_known) return errno = ENOENT, -1;
    put_string(&t, mt_config.start_directory);
    put_string(&t, "/");
  }
  put_string(&t, mt_config.spool_dir);
  put_string(&t, strrchr(out->trace, '/'));
  put_string(&t, ".");
  put_number(&t, (uint64_t)getpid(), 0);
  put_string(&t, ".spool");
  if (t.overflow) return errno = ENAMETOOLONG, -1;
  make_parents(real);
  unlink(real); /* nobody alive has our pid: a leftover */
  int fd = open(real, flags, 0600);
  if (fd >= 0 && symlink(real, out->spool)) {
    int error = errno;
    close(fd);
    unlink(real);
    errno = error;
    return -1;
  }
  return fd;
}

int mt_output_create(struct mt_output *out, const char **what) {
  if (choose_trace(out, what)) return -1;
  *what = "creating the spool";
  int fd = open_spool(out);
  if (fd >= 0) return fd;
  int error = errno;
  unlink(out->trace);
  errno = error;
  return -1;
}
