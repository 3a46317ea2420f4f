/* What programs do with descriptors, and with the folder and the files that they stand for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "endings.h"

static int next_descriptor(void) { return open("/dev/null", O_RDONLY); }

static int close_all(void) {
  begin();
  for (int fd = 3; fd < 1024; fd++) close(fd);
  allocate(1000);
  printf("%d\n", next_descriptor());
  allocate(10);
  return 0;
}

/* A service that closes everything and opens its own files: a descriptor that somebody kept is now one of those. Where
 * the library could have no table of its own, it may hold a number for a moment while it finds that out, so there the
 * numbers are not compared. */
static int close_from(void) {
  char name[32];
  int own[8];
  struct stat file;
  begin();
  await_recorder();
  closefrom(3);
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "own%d", i);
    own[i] = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (!getenv("UNDRAINED")) printf("%d\n", own[i]);
  }
  take(OWN_SIZE, 40000);
  work_until_flush();
  for (int i = 0; i < 8; i++)
    if (fstat(own[i], &file) || file.st_size) printf("own%d was written to\n", i);
  take(OWN_SIZE, 100);
  return 0;
}

static int lowest_stays(void) {
  int before = next_descriptor();
  begin();
  printf("%d %d\n", before, next_descriptor() - before);
  return 0;
}

static int own_table(void) {
  begin();
  printf("%d\n", unshare(CLONE_FILES));
  allocate(100);
  return 0;
}

static int null_streams(void) {
  begin();
  await_recorder();
  for (int fd = 0; fd < 3; fd++) close(fd);
  for (int fd = 0; fd < 3; fd++)
    if (open("/dev/null", O_RDWR) != fd) _exit(8);
  allocate(100);
  return 0;
}

/* Standard error is closed and its number taken by a file of the program: a message would stand in the middle of its
 * data. */
static int data_at_two(void) {
  struct stat file;
  close(STDERR_FILENO);
  if (open("data", O_CREAT | O_TRUNC | O_RDWR, 0600) != STDERR_FILENO) _exit(8);
  begin();
  await_recorder();
  allocate(100);
  if (fstat(STDERR_FILENO, &file) || file.st_size)
    printf("%lld bytes were written to the program's file\n", (long long)file.st_size);
  return 0;
}

static int full_stderr(void) {
  dup2(open("/dev/full", O_WRONLY), 2);
  begin();
  return ok();
}

static int broken_stderr(void) {
  int ends[2];
  if (pipe(ends)) return 1;
  close(ends[0]);
  dup2(ends[1], 2);
  begin();
  return ok();
}

static int any_mode(void) {
  umask(0);
  begin();
  return 0;
}

/* A relative name that is looked up late leads elsewhere. */
static int other_folder(void) {
  if (chdir("/")) printf("no folder\n");
  begin();
  return ok();
}

static int folder_is_gone(void) {
  if (mkdir("gone", 0755) || chdir("gone") || rmdir("../gone")) printf("no folder\n");
  begin();
  return ok();
}

/* Somebody tidies up: a file that comes back, or a store into one that is gone. */
static int files_are_gone(void) {
  begin();
  await_recorder();
  if (system("rm -f ./*.bin ./*.spool")) printf("rm failed\n");
  take(OWN_SIZE, 40000);
  return ok();
}

static int no_environment(void) {
  clearenv();
  begin();
  return ok();
}

const struct mode descriptors[] = {
    {"close-all", close_all},
    {"close-from", close_from},
    {"lowest", lowest_stays},
    {"own-table", own_table},
    {"null-streams", null_streams},
    {"data-stderr", data_at_two},
    {"full-stderr", full_stderr},
    {"broken-stderr", broken_stderr},
    {"umask", any_mode},
    {"chdir", other_folder},
    {"gone", folder_is_gone},
    {"delete", files_are_gone},
    {"no-environment", no_environment},
    {NULL, NULL},
};
