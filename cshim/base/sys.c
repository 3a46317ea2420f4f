#define _GNU_SOURCE
#include "base/sys.h"

#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "elf/symbol.h"

#define MT_SYS_BLOCK 4096u

int mt_sys_open(const char *path, int flags, mode_t mode) {
  return (int)mt_sys(SYS_openat, AT_FDCWD, path, flags, mode);
}
void mt_sys_close(int fd) { mt_sys_raw(SYS_close, fd, 0, 0, 0, 0, 0); }
ssize_t mt_sys_read(int fd, void *to, size_t size) { return mt_sys(SYS_read, fd, to, size); }
ssize_t mt_sys_pread(int fd, void *to, size_t size, uint64_t offset) {
  return mt_sys(SYS_pread64, fd, to, size, offset);
}
ssize_t mt_sys_writev(int fd, const struct iovec *parts, int count) { return mt_sys(SYS_writev, fd, parts, count); }
int mt_sys_stat(const char *path, struct stat *s) { return (int)mt_sys(SYS_newfstatat, AT_FDCWD, path, s, 0); }
int mt_sys_lstat(const char *path, struct stat *s) {
  return (int)mt_sys(SYS_newfstatat, AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW);
}
int mt_sys_fstat(int fd, struct stat *s) { return (int)mt_sys(SYS_fstat, fd, s); }

/* The older of two calls where a machine has both, as the C library makes it: filters know those. */
#ifdef SYS_mkdir
int mt_sys_mkdir(const char *path, mode_t mode) { return (int)mt_sys(SYS_mkdir, path, mode); }
int mt_sys_unlink(const char *path) { return (int)mt_sys(SYS_unlink, path); }
int mt_sys_symlink(const char *to, const char *path) { return (int)mt_sys(SYS_symlink, to, path); }
ssize_t mt_sys_readlink(const char *path, char *to, size_t room) { return mt_sys(SYS_readlink, path, to, room); }
bool mt_sys_exists(const char *path) { return !mt_sys(SYS_access, path, 0); }
#else
int mt_sys_mkdir(const char *path, mode_t mode) { return (int)mt_sys(SYS_mkdirat, AT_FDCWD, path, mode); }
int mt_sys_unlink(const char *path) { return (int)mt_sys(SYS_unlinkat, AT_FDCWD, path, 0); }
int mt_sys_symlink(const char *to, const char *path) { return (int)mt_sys(SYS_symlinkat, to, AT_FDCWD, path); }
ssize_t mt_sys_readlink(const char *path, char *to, size_t room) {
  return mt_sys(SYS_readlinkat, AT_FDCWD, path, to, room);
}
bool mt_sys_exists(const char *path) { return !mt_sys(SYS_faccessat, AT_FDCWD, path, 0); }
#endif

bool mt_sys_allocate_by_writing(int fd, uint64_t offset, uint64_t size) {
  for (uint64_t at = offset; at < offset + size; at = (at / MT_SYS_BLOCK + 1) * MT_SYS_BLOCK) {
    char byte = 0;
    if (mt_sys_pread(fd, &byte, 1, at) < 0 || (!byte && mt_sys(SYS_pwrite64, fd, &byte, 1, at) != 1)) return false;
  }
  return true;
}

bool mt_sys_allocate(int fd, uint64_t offset, uint64_t size) {
  int error = errno;
  while (mt_sys(SYS_fallocate, fd, 0, offset, size))
    if (errno != EINTR) return false;
  errno = error;
  return true;
}

ssize_t mt_sys_read_file(const char *path, char *text, size_t room) {
  int fd = mt_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return -1;
  ssize_t n = mt_sys_read(fd, text, room - 1);
  mt_sys_close(fd);
  text[n > 0 ? n : 0] = 0;
  return n;
}

bool mt_sys_getcwd(char *to, size_t room) { return mt_sys(SYS_getcwd, to, room) > 0 && to[0] == '/'; }

bool mt_sys_hostname(char *to, size_t room) {
  struct utsname names;
  if (mt_sys(SYS_uname, &names)) return false;
  size_t n = strnlen(names.nodename, sizeof names.nodename);
  if (n >= room) n = room - 1;
  memcpy(to, names.nodename, n);
  to[n] = 0;
  return true;
}

static void *map(void *at, size_t size, int protection, int flags, int fd, uint64_t offset) {
  long result = mt_sys(SYS_mmap, at, size, protection, flags, fd, offset);
  return result == -1 ? NULL : (void *)result;
}

static bool some_locked;

void mt_sys_detect_mlockall(void) {
  char text[4096],
      *at = mt_sys_read_file("/proc/thread-self/status", text, sizeof text) > 0 ? strstr(text, "\nVmLck:") : NULL;
  some_locked = at && strtol(at + sizeof "\nVmLck:" - 1, NULL, 10) > 0;
}

void mt_sys_reset_mlockall(void) { some_locked = false; }

/* What may not be touched is not filled with pages when it is mapped, and keeps out of the lock then. */
static void *map_unlocked(void *at, size_t size, int protection, int flags, int fd, uint64_t offset) {
  void *mapped = map(at, size, PROT_NONE, flags, fd, offset);
  if (!mapped) return NULL;
  mt_sys(SYS_munlock, mapped, size);
  if (!mt_sys_mprotect(mapped, size, protection)) return mapped;
  int error = errno;
  if (!(flags & MAP_FIXED)) mt_sys_munmap(mapped, size);
  return errno = error, NULL;
}

void *mt_sys_mmap(void *at, size_t size, int protection, int flags, int fd, uint64_t offset) {
  return (some_locked && protection != PROT_NONE ? map_unlocked : map)(at, size, protection, flags, fd, offset);
}

static uint64_t held;

void *mt_sys_pages_alloc(size_t size) {
  void *at = mt_sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at) __atomic_add_fetch(&held, size, __ATOMIC_RELAXED);
  return at;
}

void mt_sys_pages_free(void *at, size_t size) {
  mt_sys_munmap(at, size);
  __atomic_sub_fetch(&held, size, __ATOMIC_RELAXED);
}

uint64_t mt_sys_pages_total(void) { return __atomic_load_n(&held, __ATOMIC_RELAXED); }
int mt_sys_munmap(void *at, size_t size) { return (int)mt_sys(SYS_munmap, at, size); }
int mt_sys_madvise(void *at, size_t size, int advice) { return (int)mt_sys(SYS_madvise, at, size, advice); }
int mt_sys_mprotect(void *at, size_t size, int protection) { return (int)mt_sys(SYS_mprotect, at, size, protection); }

int mt_sys_getrlimit(int resource, struct rlimit *limit) { return (int)mt_sys(SYS_prlimit64, 0, resource, 0, limit); }
int32_t mt_sys_getpid(void) { return (int32_t)mt_sys_raw(SYS_getpid, 0, 0, 0, 0, 0, 0); }
int32_t mt_sys_gettid(void) { return (int32_t)mt_sys_raw(SYS_gettid, 0, 0, 0, 0, 0, 0); }
void mt_sys_yield(void) { mt_sys_raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0); }

void mt_sys_exit_group(int status) {
  for (;;) mt_sys_raw(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static struct timespec split(uint64_t nanoseconds) {
  return (struct timespec){.tv_sec = (time_t)(nanoseconds / 1000000000), .tv_nsec = (long)(nanoseconds % 1000000000)};
}

void mt_sys_sleep(uint64_t nanoseconds) {
  const struct timespec pause = split(nanoseconds);
  mt_sys_raw(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

void mt_sys_futex_wait(const uint32_t *word, uint32_t value, uint64_t nanoseconds) {
  const struct timespec limit = split(nanoseconds);
  mt_sys_raw(SYS_futex, (long)word, FUTEX_WAIT, value, nanoseconds ? (long)&limit : 0, 0, 0);
}

void mt_sys_futex_wake(uint32_t *word, int count) { mt_sys_raw(SYS_futex, (long)word, FUTEX_WAKE, count, 0, 0, 0); }

typedef int (*clock_function)(clockid_t clock, struct timespec *now);
static clock_function kernel_clock;

void mt_sys_clock(clockid_t clock, struct timespec *now) {
  clock_function ask = __atomic_load_n(&kernel_clock, __ATOMIC_RELAXED);
  if (!ask || ask(clock, now)) mt_sys_raw(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
}

void mt_sys_drop_vdso_clock(void) { __atomic_store_n(&kernel_clock, NULL, __ATOMIC_RELAXED); }

void mt_sys_find_vdso_clock(void) {
#if defined(__x86_64__)
  static const char name[] = "__vdso_clock_gettime";
#else
  static const char name[] = "__kernel_clock_gettime";
#endif
  uintptr_t base = getauxval(AT_SYSINFO_EHDR);
  if (!base || kernel_clock) return;
  const ElfW(Ehdr) *header = (const void *)base;
  const ElfW(Phdr) *p = (const void *)(base + header->e_phoff);
  struct mt_loaded kernel = {.base = base};
  for (unsigned i = 0; i < header->e_phnum; i++)
    if (p[i].p_type == PT_DYNAMIC) kernel.dynamic = (const void *)(base + p[i].p_offset);
  __atomic_store_n(&kernel_clock, (clock_function)mt_symbol_find(&kernel, name), __ATOMIC_RELAXED);
}

static uint64_t change_mask(int how, const uint64_t *signals) {
  uint64_t before = 0;
  mt_sys_raw(SYS_rt_sigprocmask, how, (long)signals, (long)&before, sizeof before, 0, 0);
  return before;
}

uint64_t mt_sys_block(uint64_t signals) { return change_mask(0 /* SIG_BLOCK */, &signals); }
void mt_sys_set_blocked(uint64_t signals) { change_mask(2 /* SIG_SETMASK */, &signals); }
