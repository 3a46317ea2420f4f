/* Raw system calls (syscall(2)). Another preloaded library may interpose the C library's functions of these names, and
 * its destructor may run first: libfaketime's unmaps the semaphore that its fstat and clock_gettime wait on, while the
 * library's threads and its last exit handler still run, and the program crashed. So nothing here uses a symbol that
 * can be interposed, and nothing is a cancellation point.
 *
 * They behave like the C library's: -1 and errno on failure. What the C half may still import, and why, is the list in
 * scripts/test-c.sh. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/* Returns what the kernel returns: a negative error number on failure, errno untouched. */
static inline long mt_sys_raw(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result = number;
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                   x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "this machine's system calls are not known"
#endif
}

static inline long mt_sys_result(long result) {
  if ((unsigned long)result <= -4096ul) return result;
  errno = (int)-result;
  return -1;
}

/* Any call, arguments that are not given are 0: mt_sys(SYS_gettid). */
#define MT_SYS_SEVENTH(n, a, b, c, d, e, f, ...) (n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)
#define mt_sys(...) mt_sys_result(mt_sys_raw(MT_SYS_SEVENTH(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)))

int mt_sys_open(const char *path, int flags, mode_t mode);
void mt_sys_close(int fd);
ssize_t mt_sys_read(int fd, void *to, size_t size);
ssize_t mt_sys_pread(int fd, void *to, size_t size, uint64_t offset);
ssize_t mt_sys_writev(int fd, const struct iovec *parts, int count);
int mt_sys_stat(const char *path, struct stat *s);
int mt_sys_lstat(const char *path, struct stat *s);
int mt_sys_fstat(int fd, struct stat *s);
int mt_sys_mkdir(const char *path, mode_t mode);
int mt_sys_unlink(const char *path);
int mt_sys_symlink(const char *to, const char *path);
ssize_t mt_sys_readlink(const char *path, char *to, size_t room);
bool mt_sys_exists(const char *path);

/* Gives disk space to a part of a file, zeros where nothing was written. EOPNOTSUPP on file systems that cannot. */
bool mt_sys_allocate(int fd, uint64_t offset, uint64_t size);

/* The same by writing one byte of each block, as zero if it is zero: not while another thread may store there. */
bool mt_sys_allocate_by_writing(int fd, uint64_t offset, uint64_t size);

/* The whole of a small file, or as much as there is room for; the text ends with a null. Returns its length, -1 if it
 * cannot be read. */
ssize_t mt_sys_read_file(const char *path, char *text, size_t room);

/* An absolute path, or false: a working folder outside of the process's root has none. */
bool mt_sys_getcwd(char *to, size_t room);
bool mt_sys_hostname(char *to, size_t room);

/* Zeroed anonymous memory, backed by pages on first write; NULL on failure. */
void *mt_sys_pages_alloc(size_t size);
/* Frees some of it. */
void mt_sys_pages_free(void *at, size_t size);
/* How much of it is allocated. */
uint64_t mt_sys_pages_total(void);
/* NULL on failure. Where the program has all its memory locked, what is mapped now included (mlockall), ours is left
 * out: it would take all its pages, zeroed or read, at once. */
void *mt_sys_mmap(void *at, size_t size, int protection, int flags, int fd, uint64_t offset);
int mt_sys_munmap(void *at, size_t size);
int mt_sys_madvise(void *at, size_t size, int advice);
int mt_sys_mprotect(void *at, size_t size, int protection);
/* Detects locked memory, when recording starts. A forked child has none locked (mlock(2)). */
void mt_sys_detect_mlockall(void);
void mt_sys_reset_mlockall(void);

int mt_sys_getrlimit(int resource, struct rlimit *limit);
int32_t mt_sys_getpid(void);
int32_t mt_sys_gettid(void);
_Noreturn void mt_sys_exit_group(int status);
void mt_sys_yield(void);
void mt_sys_sleep(uint64_t nanoseconds);

/* futex(2): waits while the word has the value, for at most nanoseconds (0: without limit); wakes at most count
 * threads. */
void mt_sys_futex_wait(const uint32_t *word, uint32_t value, uint64_t nanoseconds);
void mt_sys_futex_wake(uint32_t *word, int count);

/* By the vDSO where it was found, which takes 20 ns. */
void mt_sys_clock(clockid_t clock, struct timespec *now);

/* Finds the vDSO's clock_gettime (vdso(7)); until then the clock is a system call. */
void mt_sys_find_vdso_clock(void);
/* The clock is a system call again. */
void mt_sys_drop_vdso_clock(void);

/* Sets of signals as the kernel has them: signal N is bit N - 1. */
#define MT_SYS_SIGNAL(number) (1ull << ((number) - 1))
/* Blocks them on this thread and returns what was blocked before. */
uint64_t mt_sys_block(uint64_t signals);
/* Every signal but 32 and 33, which glibc reserves (SIGCANCEL, SIGSETXID): it waits until each thread has handled
 * those. */
#define MT_SYS_ALL_SIGNALS ~(MT_SYS_SIGNAL(32) | MT_SYS_SIGNAL(33))
void mt_sys_set_blocked(uint64_t signals);
