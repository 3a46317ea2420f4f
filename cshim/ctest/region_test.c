/* The spool's file under limits: what cannot be had is refused or counted, never a signal. */
#define _GNU_SOURCE
#include "spool/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "check.h"
#include "oracle.h"
#include "process/recorder.h"

enum { EVENTS = 100000 };

static void record_many(void) {
  for (uint64_t i = 1; i <= EVENTS; i++) check_event(i);
}

/* Everything was recorded or counted, the oldest first. */
static uint64_t check_account(const struct oracle *o, uint64_t events) {
  struct oracle_record *records;
  size_t n = oracle_records(o, &records), wrong = 0;
  for (size_t i = 0; i < n; i++) wrong += records[i].record.addr != i + 1;
  CHECK_EQ(wrong, 0);
  CHECK_EQ(n + oracle_lost(o) + o->header->lost_no_ring, events);
  free(records);
  return n;
}

static void layout(void) {
  struct oracle o;
  const char *spool = check_output("r.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  struct stat s;
  CHECK(!stat(spool, &s) && (uint64_t)s.st_size == o.header->file_size);
  CHECK((uint64_t)s.st_blocks * 512 < 4 << 20); /* sparse */
  CHECK_EQ(o.header->pid, (uint64_t)getpid());
  CHECK(o.header->process_start && o.header->boot_hash);
}

static void set_limit(int which, uint64_t bytes) {
  struct rlimit limit = {bytes, bytes};
  if (setrlimit(which, &limit)) abort();
}

static void small_files(void) {
  const char *what = "";
  set_limit(RLIMIT_FSIZE, 1 << 20);
  check_output("r.bin");
  CHECK_EQ(mt_region_create(&what), (uint64_t)-1);
  CHECK_EQ(errno, EFBIG);
  CHECK(access("r.bin", F_OK)); /* nothing is left */
  check_event(1);               /* and nothing happens, said once */
  check_event(2);
  CHECK(mt_recorder_is_off());
}

static void smaller_files(void) {
  struct oracle o;
  set_limit(RLIMIT_FSIZE, 16 << 20);
  const char *spool = check_output("r.bin");
  record_many();
  CHECK(oracle_open(&o, spool));
  CHECK(o.header->file_size <= 16 << 20);
  CHECK(check_account(&o, EVENTS) > EVENTS / 2);
}

static void small_address_space(void) {
  struct oracle o;
  if (CHECK_SANITIZED) return check_skip("sanitizers need address space");
  set_limit(RLIMIT_AS, 200 << 20);
  const char *spool = check_output("r.bin");
  record_many();
  CHECK(oracle_open(&o, spool));
  CHECK(o.header->file_size <= 200 << 17); /* an eighth */
  check_account(&o, EVENTS);
}

static void full_disk(const char *options, bool starts) {
  struct oracle o;
  CHECK(!mkdir("small", 0700));
  if (mount("tmpfs", "small", "tmpfs", 0, options)) return check_skip("mounting a small file system needs root");
  if (!starts) { /* not a page is left */
    int fd = open("small/full", O_CREAT | O_WRONLY, 0600);
    CHECK_EQ(write(fd, "x", 1), 1);
    close(fd);
  }
  const char *spool = check_output("small/r.bin");
  mt_config.log_level = 0;
  record_many();
  CHECK_EQ(mt_recorder_is_off(), !starts);
  if (starts && oracle_open(&o, spool)) {
    uint64_t n = check_account(&o, EVENTS);
    CHECK(n > 0 && n < EVENTS);
    oracle_close(&o);
  }
  umount2("small", MNT_DETACH);
}

static void no_disk(void) { full_disk("size=4k", false); }
static void little_disk(void) { full_disk("size=2m", true); }

static void deleted(void) {
  struct oracle o;
  const char *spool = check_output("r.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  CHECK(!unlink(spool) && !unlink("r.bin"));
  for (uint64_t i = 2; i <= EVENTS; i++) check_event(i);
  CHECK_EQ(check_account(&o, EVENTS), EVENTS);
  CHECK(access(spool, F_OK)); /* and it does not come back */
}

/* Somebody else's file under the spool's name is not touched. */
static void replaced(void) {
  struct oracle o;
  struct stat s;
  const char *spool = check_output("r.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  CHECK(!unlink(spool));
  close(open(spool, O_CREAT | O_EXCL | O_RDWR, 0600));
  for (uint64_t i = 2; i <= EVENTS; i++) check_event(i);
  CHECK(!stat(spool, &s) && s.st_size == 0 && s.st_blocks == 0);
  CHECK_EQ(check_account(&o, EVENTS), EVENTS);
}

static void descriptors(void) {
  struct oracle o;
  struct stat s;
  const char *spool = check_output("r.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  for (int fd = 3; fd < 100; fd++) close(fd);
  int own[20];
  for (int i = 0; i < 20; i++) own[i] = open(check_format("own%d", i), O_CREAT | O_RDWR, 0600);
  CHECK_EQ(own[0], 3); /* none of ours was open, and none is now */
  for (uint64_t i = 2; i <= EVENTS; i++) check_event(i);
  for (int i = 0; i < 20; i++) CHECK(!fstat(own[i], &s) && s.st_size == 0 && s.st_blocks == 0);
  CHECK_EQ(dup(own[0]), own[19] + 1);
  CHECK_EQ(check_account(&o, EVENTS), EVENTS);
}

static void no_descriptors(void) {
  struct oracle o;
  const char *spool = check_output("r.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  set_limit(RLIMIT_NOFILE, 3);
  for (uint64_t i = 2; i <= EVENTS; i++) check_event(i);
  CHECK_EQ(check_account(&o, EVENTS), EVENTS);
}

int main(void) {
  static const struct check_case cases[] = {
      {"layout", layout},
      {"small files", small_files},
      {"smaller files", smaller_files},
      {"small address space", small_address_space},
      {"no disk", no_disk},
      {"little disk", little_disk},
      {"deleted", deleted},
      {"replaced", replaced},
      {"descriptors", descriptors},
      {"no descriptors", no_descriptors},
  };
  return check_main("region", cases, sizeof cases / sizeof *cases);
}
