/* Working directories, roots, and files that go away or are replaced. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manners.h"

/* A service that closes everything and opens its own files: a descriptor that somebody kept is now one of those. */
static void close_all(void) {
  begin();
  let_settle();
  closefrom(3);
  char name[32], text[64];
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "own%d", i);
    int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
    printf("%d\n", fd);
  }
  allocate(1000, 40000);
  usleep(1300000); /* a flush comes at least every second */
  allocate(1000, 100);
  for (int fd = 3; fd < 11; fd++) {
    struct stat s;
    if (fstat(fd, &s) || s.st_size || read(fd, text, sizeof text)) printf("descriptor %d was written to\n", fd);
  }
}

static void daemon_like(void) {
  begin();
  let_settle();
  for (int fd = 0; fd < 3; fd++) close(fd);
  for (int fd = 0; fd < 3; fd++)
    if (open("/dev/null", O_RDWR) != fd) _exit(8);
  allocate(1000, 100);
}

/* Standard error is closed and its number taken by a file of the program: a message would stand in the middle of its
 * data. */
static void data_at_two(void) {
  close(STDERR_FILENO);
  if (open("data", O_CREAT | O_TRUNC | O_RDWR, 0600) != STDERR_FILENO) _exit(8);
  begin();
  let_settle();
  allocate(1000, 100);
  struct stat s;
  if (fstat(STDERR_FILENO, &s) || s.st_size)
    printf("%lld bytes were written to the program's file\n", (long long)s.st_size);
}

static void change_root(void) {
  begin();
  if (chroot(".") || chdir("/")) printf("chroot: %s\n", strerror(errno));
  allocate(1000, 20000);
}

/* A relative name that is looked up late leads elsewhere. */
static void change_folder(void) {
  check(chdir("/"), "chdir");
  begin();
}

static void gone_folder(void) {
  char path[PATH_MAX];
  if (!getcwd(path, sizeof path)) printf("getcwd\n");
  check(mkdir("gone", 0700) || chdir("gone") || rmdir("../gone"), "rmdir");
  begin();
  check(chdir(path), "chdir");
}

/* Somebody tidies up: a file that comes back, or a store into one that is gone. */
static void delete_files(void) {
  begin();
  let_settle();
  if (system("rm -f ./*.bin ./*.spool")) printf("rm failed\n");
  allocate(1000, 40000);
}

const struct mode folders[] = {
    {"closefrom", close_all}, {"daemon", daemon_like}, {"stderr", data_at_two},  {"chroot", change_root},
    {"chdir", change_folder}, {"gone", gone_folder},   {"delete", delete_files}, {NULL, NULL},
};
