#define _GNU_SOURCE
#include "spool/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/log.h"
#include "base/sys.h"
#include "spool/identity.h"

#define MT_NAME_TRIES 10000u
#define MT_CREATE_SPOOL (O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC)

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
  mt_sys_clock(CLOCK_REALTIME, &now);
  int64_t days = now.tv_sec / 86400 + 719468;
  int64_t era = days / 146097, doe = days - era * 146097;
  int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100),
          mp = (5 * doy + 2) / 153;
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
  static const char *const names[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                      "PMI_RANK", "SLURM_PROCID",         "MV2_COMM_WORLD_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *v = mt_config_variable(names[i]);
    if (v && *v) {
      put_component(t, v);
      return;
    }
  }
  put_string(t, "0");
}

static void put_host(struct text *t) {
  char host[256] = "unknown";
  mt_sys_hostname(host, sizeof host);
  put_component(t, host);
}

/* %q{NAME}: the environment variable NAME. Returns the pattern's rest, or NULL if it is not that form. */
static const char *put_variable(struct text *t, const char *p) {
  const char *close = *p == '{' ? strchr(p, '}') : NULL;
  char name[128];
  if (!close || (size_t)(close - p) >= sizeof name) return NULL;
  memcpy(name, p + 1, (size_t)(close - p - 1));
  name[close - p - 1] = 0;
  const char *value = mt_config_variable(name);
  if (value) put_component(t, value);
  return close + 1;
}

const char *mt_output_file_text(char text[MT_FILE_TEXT], uint64_t device, uint64_t inode, uint64_t owner) {
  struct text t = {.at = text, .room = MT_FILE_TEXT};
  put_number(&t, device, 0);
  put_string(&t, ":");
  put_number(&t, inode, 0);
  put_string(&t, ":");
  put_number(&t, owner, 0);
  return text;
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
      case 'p': put_number(&t, (uint64_t)mt_sys_getpid(), 0); break;
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
      default: /* an unknown placeholder is copied */ put_string(&t, "%"); rest = p + 1;
    }
    p = rest;
  }
  return t.overflow ? -1 : 0;
}

static void make_parents(char *path) {
  for (char *p = path + 1; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    mt_sys_mkdir(path, 0777);
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

static int absolute_spool_dir(struct text *t) {
  if (mt_config.spool_dir[0] != '/') {
    if (!mt_config.start_directory_known) return errno = ENOENT, -1;
    put_string(t, mt_config.start_directory);
    put_string(t, "/");
  }
  put_string(t, mt_config.spool_dir);
  return t->overflow ? (errno = ENAMETOOLONG, -1) : 0;
}

/* With MEMTRACE_SPOOL_DIR the spool lives there under the trace's name, our pid and, since a pid comes again and
 * processes of several containers may share the folder, the first number that is free. A link beside the trace leads
 * readers to it. Returns the descriptor, or -1: EEXIST if the link's name is taken. */
static int open_distant_spool(const struct mt_output *out) {
  static char real[MT_PATH_MAX];
  int fd = -1;
  for (unsigned i = 0; i < MT_NAME_TRIES && fd < 0; i++) {
    struct text t = {.at = real, .room = sizeof real};
    if (absolute_spool_dir(&t)) return -1;
    put_string(&t, strrchr(out->trace, '/'));
    put_string(&t, ".");
    put_number(&t, (uint64_t)mt_sys_getpid(), 0);
    if (i) put_string(&t, "."), put_number(&t, i, 0);
    put_string(&t, ".spool");
    if (t.overflow) return errno = ENAMETOOLONG, -1;
    if (!i) make_parents(real);
    fd = mt_sys_open(real, MT_CREATE_SPOOL, 0600);
    if (fd < 0 && errno != EEXIST) return -1;
  }
  if (fd >= 0 && mt_sys_symlink(real, out->spool)) {
    int error = errno;
    mt_sys_close(fd);
    mt_sys_unlink(real);
    return errno = error, -1;
  }
  return fd;
}

static int open_spool(const struct mt_output *out) {
  return mt_config.spool_dir[0] ? open_distant_spool(out) : mt_sys_open(out->spool, MT_CREATE_SPOOL, 0600);
}

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Removes the spool that is open as fd: its name and, where that is a link, its target, unless the link was replaced by
 * one to another file. */
static void remove_spool(const char *path, int fd) {
  static char target[MT_PATH_MAX];
  struct stat own, named;
  ssize_t n = mt_sys_readlink(path, target, sizeof target - 1);
  if (n > 0) {
    target[n] = 0;
    if (!mt_sys_fstat(fd, &own) && !mt_sys_lstat(target, &named) && same_file(&own, &named)) mt_sys_unlink(target);
  }
  mt_sys_unlink(path);
}

/* Whether the file is a spool that no process will ever write to again. One without a header is just being created. */
static bool is_abandoned(int fd) {
  struct mt_spool_header header;
  if (mt_sys_pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header) return false;
  return !memcmp(header.magic, MT_SPOOL_MAGIC, sizeof header.magic) && !mt_identity_is_alive(&header);
}

/* Whether the program that this process ran before, and replaced by exec, owned the name: its records stay, and no
 * warning is due. */
static bool is_predecessor(const struct mt_output *out) {
  struct mt_spool_header theirs, ours = {0};
  int fd = mt_sys_open(out->spool, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  bool whole = mt_sys_pread(fd, &theirs, sizeof theirs, 0) == (ssize_t)sizeof theirs &&
               !memcmp(theirs.magic, MT_SPOOL_MAGIC, sizeof theirs.magic);
  mt_sys_close(fd);
  if (!whole) return false;
  mt_identity_fill(&ours);
  return theirs.pid == ours.pid && theirs.process_start == ours.process_start && theirs.boot_hash == ours.boot_hash &&
         theirs.pid_namespace == ours.pid_namespace;
}

/* "/dev/null", "/dev/stdout" and the like: numbered names beside it, in a folder of devices, are not what was meant. */
static bool is_no_file(const char *path) {
  struct stat s;
  if (!mt_sys_stat(path, &s) && !S_ISREG(s.st_mode)) return true;
  return !strncmp(path, "/dev/", 5) && !mt_sys_lstat(path, &s) && S_ISLNK(s.st_mode);
}

/* For MEMTRACE_FORCE: removes the spool of a dead process. The lock, and the check that the name still refers to the
 * same file, keep two processes that find the same spool from removing each other's new one. */
static bool remove_abandoned(const char *path) {
  struct stat opened, named;
  int fd = mt_sys_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
  if (fd < 0) return errno == ENOENT && !mt_sys_unlink(path); /* a link to nowhere */
  bool ours = !mt_sys_fstat(fd, &opened) && S_ISREG(opened.st_mode) && !mt_sys(SYS_flock, fd, LOCK_EX | LOCK_NB) &&
              is_abandoned(fd);
  ours = ours && !mt_sys_stat(path, &named) && same_file(&named, &opened);
  if (ours) remove_spool(path, fd);
  mt_sys_close(fd);
  return ours;
}

enum claim { CLAIMED, TAKEN, FAILED };

static enum claim claim_trace(struct mt_output *out) {
  const char *path = out->trace;
  struct stat s;
  if (mt_config.force && !mt_sys_lstat(path, &s)) {
    if (!S_ISREG(s.st_mode)) return errno = EEXIST, FAILED; /* never through a link, never a device */
    mt_sys_unlink(path);
  }
  int fd = mt_sys_open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return errno == EEXIST ? TAKEN : FAILED;
  mt_sys(SYS_fchmod, fd, 0600);
  bool known = !mt_sys_fstat(fd, &s);
  mt_sys_close(fd);
  if (!known) return FAILED;
  out->device = s.st_dev;
  out->inode = s.st_ino;
  out->owner = s.st_uid;
  return CLAIMED;
}

/* The spool's name is claimed first and decides who owns the trace's: while a process records, both exist, and when it
 * was killed, its records stay. */
static enum claim claim(struct mt_output *out, int *fd, const char **what) {
  struct stat s;
  *what = mt_config.spool_dir[0] ? "creating the spool" : "creating the trace"; /* in the same folder */
  if (!mt_config.force && !mt_sys_lstat(out->trace, &s)) return TAKEN;
  *fd = open_spool(out);
  if (*fd < 0 && errno == EEXIST && mt_config.force && remove_abandoned(out->spool)) *fd = open_spool(out);
  if (*fd < 0) return errno == EEXIST ? TAKEN : FAILED;
  *what = "creating the trace";
  enum claim result = claim_trace(out);
  if (result == CLAIMED) return CLAIMED;
  int error = errno;
  remove_spool(out->spool, *fd);
  mt_sys_close(*fd);
  errno = error;
  return result;
}

/* Takes the pattern's name, or the next free number after it. */
int mt_output_create(struct mt_output *out, const char **what) {
  static char pattern[MT_PATH_MAX], wanted[MT_PATH_MAX];
  *what = "the output name";
  if (absolute_pattern(pattern, sizeof pattern)) return -1;
  bool counts = strstr(pattern, "%n") != NULL, foreign = false, made = false;
  for (unsigned i = 0; i < MT_NAME_TRIES; i++) {
    if (!i || counts) {
      if (mt_output_expand(wanted, sizeof wanted - sizeof ".10000", pattern, i)) return errno = ENAMETOOLONG, -1;
      memcpy(out->trace, wanted, sizeof wanted);
      if (is_no_file(out->trace))
        return *what = "MEMTRACE_OUTPUT names a device, a folder or a pipe, and a trace is a file; MEMTRACE_DISABLE=1 "
                       "records nothing",
               errno = 0, -1;
    } else if (numbered(out->trace, sizeof out->trace, wanted, i))
      return errno = ENAMETOOLONG, -1;
    if (join(out->spool, sizeof out->spool, out->trace, ".spool", "")) return -1;
    int fd = -1;
    enum claim result = claim(out, &fd, what);
    if (result == FAILED && errno == ENOENT && !made) {
      make_parents(out->trace);
      made = true;
      result = claim(out, &fd, what);
    }
    if (result == FAILED) return -1;
    if (result == TAKEN) {
      foreign = foreign || !is_predecessor(out);
      continue;
    }
    if (i && !counts)
      mt_log(foreign ? MT_LOG_WARN : MT_LOG_INFO, wanted,
             mt_config.force ? " is being written; this trace goes to " : " exists and is kept; this trace goes to ",
             out->trace);
    return fd;
  }
  return errno = EEXIST, -1;
}
