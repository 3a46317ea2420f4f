/* Names of the files that a process leaves, and how they are made. */
#define _GNU_SOURCE
#include "spool/output.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "spool/identity.h"

static const char *expand(const char *pattern, unsigned counter) {
  static char out[MT_PATH_MAX];
  return mt_output_expand(out, sizeof out, pattern, counter) ? "too long" : out;
}

static void placeholders(void) {
  char host[256];
  gethostname(host, sizeof host);
  static const char *const ranks[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                      "PMI_RANK", "SLURM_PROCID",         "MV2_COMM_WORLD_RANK"};
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) unsetenv(ranks[i]);
  CHECK_TEXT(expand("a.%p.b", 0), check_format("a.%d.b", getpid()));
  CHECK_TEXT(expand("%e", 0), program_invocation_short_name);
  CHECK_TEXT(expand("%h", 0), host);
  CHECK_TEXT(expand("%n-%n", 42), "42-42");
  CHECK_TEXT(expand("%r", 0), "0");
  setenv("SLURM_PROCID", "7", 1);
  CHECK_TEXT(expand("%r", 0), "7");
  setenv("RANK", "3", 1);
  CHECK_TEXT(expand("%r", 0), "3");
  CHECK_TEXT(expand("100%%", 0), "100%");
  CHECK_TEXT(expand("%x%", 0), "%x%");
  CHECK_TEXT(expand("", 0), "");
  const char *time = expand("%t", 0);
  CHECK(strlen(time) == 15 && time[8] == '-' && time[0] == '2' && isdigit((unsigned char)time[14]));
}

static void variables(void) {
  setenv("CTEST_VALUE", "../../etc/x\ny", 1);
  unsetenv("CTEST_NONE");
  CHECK_TEXT(expand("%q{CTEST_VALUE}", 0), "_._.._etc_x_y"); /* cannot lead out of the folder */
  CHECK_TEXT(expand("a%q{CTEST_NONE}b", 0), "ab");
  CHECK_TEXT(expand("%q{unclosed", 0), "%q{unclosed");
  CHECK_TEXT(expand("%q", 0), "%q");
}

static void too_long(void) {
  char small[8];
  CHECK_EQ(mt_output_expand(small, sizeof small, "1234567", 0), 0);
  CHECK_EQ(mt_output_expand(small, sizeof small, "12345678", 0), (uint64_t)-1);
  CHECK_EQ(mt_output_expand(small, sizeof small, "%p%p%p%p%p%p%p%p", 0), (uint64_t)-1);
}

static struct mt_output out;

/* The trace's name below the case's folder, or the step that failed. */
static const char *create(const char *pattern) {
  const char *what = "";
  check_output(pattern);
  char folder[4096];
  if (!getcwd(folder, sizeof folder)) abort();
  int fd = mt_output_create(&out, &what);
  if (fd < 0) return check_format("%s: %d", what, errno);
  close(fd);
  return check_format("%s", out.trace + strlen(folder) + 1);
}

static void next_free_number(void) {
  mt_config.log_level = 0;
  CHECK_TEXT(create("t.bin"), "t.bin");
  CHECK_TEXT(create("t.bin"), "t.1.bin");
  CHECK_TEXT(create("t.bin"), "t.2.bin");
  CHECK_TEXT(create("plain"), "plain");
  CHECK_TEXT(create("plain"), "plain.1");
  CHECK_TEXT(create(".hidden"), ".hidden");
  CHECK_TEXT(create(".hidden"), ".hidden.1");
  CHECK_TEXT(create("n%n.bin"), "n0.bin");
  CHECK_TEXT(create("n%n.bin"), "n1.bin");
  unlink("t.1.bin"); /* its spool is still there: a killed run's records are as precious */
  CHECK_TEXT(create("t.bin"), "t.3.bin");
}

static void links(void) {
  struct stat s;
  mt_config.log_level = 0;
  CHECK(!symlink("elsewhere", "t.bin"));
  CHECK_TEXT(create("t.bin"), "t.1.bin");
  CHECK(lstat("elsewhere", &s) && errno == ENOENT);
  mt_config.force = true;
  CHECK_TEXT(create("t.bin"), check_format("creating the trace: %d", EEXIST));
  CHECK(!lstat("t.bin", &s) && S_ISLNK(s.st_mode));
  CHECK(lstat("elsewhere", &s) && errno == ENOENT);
  mt_config.force = false;
  CHECK(!symlink("/tmp/nowhere/at/all", "u.bin.spool"));
  CHECK_TEXT(create("u.bin"), "u.1.bin");
}

static void modes(void) {
  struct stat s;
  umask(0);
  CHECK_TEXT(create("deep/er/t.bin"), "deep/er/t.bin");
  CHECK(!stat("deep/er/t.bin", &s) && (s.st_mode & 0777) == 0600);
  CHECK(!stat("deep/er/t.bin.spool", &s) && (s.st_mode & 0777) == 0600);
  umask(0177);
  CHECK_TEXT(create("m.bin"), "m.bin");
  CHECK(!stat("m.bin", &s) && (s.st_mode & 0777) == 0600);
}

/* What a process of this identity leaves when it is killed. */
static void leave_spool(const char *path, uint64_t start_offset, uint64_t namespace_offset) {
  struct mt_spool_header header = {.magic = MT_SPOOL_MAGIC};
  mt_identity_fill(&header);
  header.process_start += start_offset;
  header.pid_namespace += namespace_offset;
  int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  CHECK_EQ(write(fd, &header, sizeof header), sizeof header);
  close(fd);
}

static off_t size_of(const char *path) {
  struct stat s;
  return stat(path, &s) ? -1 : s.st_size;
}

static void force(void) {
  CHECK_TEXT(create("t.bin"), "t.bin");
  CHECK(!unlink("t.bin.spool")); /* it ended */
  int fd = open("t.bin", O_WRONLY);
  CHECK_EQ(write(fd, "old", 3), 3);
  close(fd);
  mt_config.force = true;
  CHECK_TEXT(create("t.bin"), "t.bin");
  CHECK_EQ(size_of("t.bin"), 0);
  CHECK(!mkdir("folder.bin", 0700));
  CHECK_TEXT(create("folder.bin"), "MEMTRACE_OUTPUT names a device, a folder or a pipe, and a trace is a file; "
                                   "MEMTRACE_DISABLE=1 records nothing: 0");
}

/* A trace that somebody writes is never replaced; that of a dead process is, spool and all. */
static void force_beside_others(void) {
  mt_config.force = true;
  CHECK_TEXT(create("t.bin"), "t.bin");
  mt_config.log_level = 0;
  CHECK_TEXT(create("t.bin"), "t.1.bin"); /* a spool without a header is just being made */
  leave_spool("t.bin.spool", 0, 0);
  CHECK_TEXT(create("t.bin"), "t.2.bin"); /* our own process lives */
  leave_spool("t.bin.spool", 0, 1);
  CHECK_TEXT(create("t.bin"), "t.3.bin"); /* one in another namespace may */
  leave_spool("t.bin.spool", 1, 0);
  CHECK_TEXT(create("t.bin"), "t.bin"); /* the pid came again */
  CHECK_EQ(size_of("t.bin.spool"), 0);
  CHECK(!symlink("nowhere", "l.bin.spool"));
  CHECK_TEXT(create("l.bin"), "l.bin");
  CHECK(!mkdir("d.bin.spool", 0700));
  CHECK_TEXT(create("d.bin"), "d.1.bin");
}

/* Spools of several containers in one folder: the pid is not enough of a name. */
static void shared_spool_folder(void) {
  char target[4096] = {0};
  check_output("t.bin");
  snprintf(mt_config.spool_dir, sizeof mt_config.spool_dir, "%.*s/spools",
           (int)(strlen(mt_config.output) - strlen("/t.bin")), mt_config.output);
  CHECK(!mkdir("spools", 0700));
  const char *other = check_format("spools/t.bin.%d.spool", getpid());
  leave_spool(other, 0, 1);
  off_t before = size_of(other);
  CHECK_TEXT(create("t.bin"), "t.bin");
  CHECK_EQ(size_of(other), before);
  CHECK(readlink("t.bin.spool", target, sizeof target - 1) > 0);
  CHECK_TEXT(target, check_format("%s/t.bin.%d.1.spool", mt_config.spool_dir, getpid()));
  leave_spool(target, 1, 0);
  mt_config.force = true; /* removes link and target of a dead one */
  CHECK_TEXT(create("t.bin"), "t.bin");
  CHECK_EQ(size_of("t.bin.spool"), 0);
  CHECK_EQ(size_of(other), before);
}

static void relative(void) {
  char start[4096];
  CHECK(getcwd(start, sizeof start));
  CHECK(!mkdir("100%p", 0700) && !chdir("100%p")); /* a folder's name is no pattern */
  mt_config_load((char *[]){(char *)"MEMTRACE_OUTPUT=sub/t.bin", (char *)"MEMTRACE_SPOOL_DIR=spools", NULL});
  CHECK(!chdir("/"));
  const char *what = "";
  int fd = mt_output_create(&out, &what);
  CHECK(fd >= 0);
  close(fd);
  CHECK_TEXT(out.trace, check_format("%s/100%%p/sub/t.bin", start));
  char target[4096];
  ssize_t n = readlink(out.spool, target, sizeof target);
  CHECK(n > 0);
  CHECK_TEXT(check_format("%.*s", (int)n, target), check_format("%s/100%%p/spools/t.bin.%d.spool", start, getpid()));
  CHECK(!access(out.spool, F_OK)); /* the link leads somewhere */
}

static void unwritable(void) {
  const char *what = "";
  snprintf(mt_config.output, sizeof mt_config.output, "/proc/nothing/t.bin");
  CHECK_EQ(mt_output_create(&out, &what), (uint64_t)-1);
  CHECK_EQ(errno, ENOENT);
  CHECK_TEXT(what, "creating the trace");
  snprintf(mt_config.output, sizeof mt_config.output, "t.bin");
  mt_config.start_directory_known = false; /* the process started in a deleted folder */
  CHECK_EQ(mt_output_create(&out, &what), (uint64_t)-1);
  CHECK_EQ(errno, ENOENT);
  CHECK_TEXT(create("t.bin"), "t.bin");
  snprintf(mt_config.spool_dir, sizeof mt_config.spool_dir, "/proc/nothing");
  CHECK_TEXT(create("v.bin"), check_format("creating the spool: %d", ENOENT));
  CHECK(access("v.bin", F_OK)); /* no empty trace is left */
}

int main(void) {
  static const struct check_case cases[] = {
      {"placeholders", placeholders},
      {"variables", variables},
      {"too long", too_long},
      {"next free number", next_free_number},
      {"links", links},
      {"modes", modes},
      {"force", force},
      {"force beside others", force_beside_others},
      {"shared spool folder", shared_spool_folder},
      {"relative", relative},
      {"unwritable", unwritable},
  };
  return check_main("output", cases, sizeof cases / sizeof *cases);
}
