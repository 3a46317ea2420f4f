/* A program that memtrace attach comes to. Its first thread reads what to do from the standard input, and answers each
 * line when it is done:
 *
 *   alloc N SIZE   N allocations, and their frees
 *   fetched N SIZE the same by a pointer that it has fetched from the driver before
 *   late SIZE      one by a library that it loads now (the second argument)
 *   fork N SIZE    in a forked child, which ends
 *   end
 *
 * attached MODE [LIBRARY]: what its other threads do meanwhile.
 *   quiet     nothing, there are none
 *   storm     malloc and free all the time, in two threads
 *   spin      all threads run all the time, also the first one
 *   NAME      one waits in that system call, and the first one runs all the time; the waiting one checks, when it goes
 *             on, that nothing happened to it
 *   nocuda    no CUDA so far
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"

typedef int (*allocate)(uint64_t *, size_t);

static void *context;
static allocate fetched;
static int channel[2]; /* by which the waiting thread is woken */
static sem_t semaphore;
static atomic_bool over;

static void expect(bool well, const char *what) {
  if (well) return;
  printf("%s: %s\n", what, strerror(errno));
  fflush(stdout);
  _exit(1);
}

static void allocate_by(allocate function, long count, size_t size) {
  uint64_t p;
  for (long i = 0; i < count; i++) expect(!function(&p, size) && !cuMemFree_v2(p), "an allocation and its free");
}

static void *malloc_storm(void *unused) {
  for (unsigned i = 0; !over; i++) {
    void *p[8];
    for (unsigned j = 0; j < 8; j++) p[j] = malloc(i * 7919 % 4000 + 1);
    for (unsigned j = 0; j < 8; j++) free(p[j]);
  }
  return unused;
}

static volatile uint64_t count;

static void *spin(void *unused) {
  while (!over) count++;
  return unused;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool wait_poll(void) {
  struct pollfd one = {.fd = channel[0], .events = POLLIN};
  return poll(&one, 1, -1) == 1 && one.revents == POLLIN;
}

static bool wait_timed_poll(void) {
  struct pollfd one = {.fd = channel[0], .events = POLLIN};
  return poll(&one, 1, 100000) == 1 && one.revents == POLLIN;
}

static bool wait_epoll(void) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77};
  int fd = epoll_create1(0);
  return fd >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, channel[0], &event) && epoll_wait(fd, &event, 1, -1) == 1 &&
         event.data.u64 == 77;
}

static bool wait_select(void) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(channel[0], &set);
  return select(channel[0] + 1, &set, NULL, NULL, NULL) == 1;
}

static bool wait_read(void) {
  char byte;
  return read(channel[0], &byte, 1) == 1 && byte == '!';
}

static bool wait_receive(void) {
  char byte;
  return recv(channel[0], &byte, 1, 0) == 1 && byte == '!';
}

static bool wait_semaphore(void) { return !sem_wait(&semaphore); }

static bool wait_timed_semaphore(void) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 1000;
  return !sem_timedwait(&semaphore, &limit);
}

static long seconds = 1; /* of a sleep */

/* The kernel goes on with what is left of it. */
static bool wait_sleep(void) {
  double begin = now();
  struct timespec long_enough = {.tv_sec = seconds}, left = {0};
  return !nanosleep(&long_enough, &left) && now() - begin >= (double)seconds;
}

#if defined(__x86_64__)
/* All registers but those that a system call may change: rax, rcx, r11. */
static bool wait_registers(void) {
  static double before[16], after[16] __attribute__((aligned(32)));
  struct pollfd one = {.fd = channel[0], .events = POLLIN};
  long result, general = 1;
  for (int i = 0; i < 16; i++) before[i] = i + 0.5;
  register long r8 __asm__("r8") = 0x1111, r9 __asm__("r9") = 0x2222, r10 __asm__("r10") = 0x3333,
                   r12 __asm__("r12") = 0x4444, r13 __asm__("r13") = 0x5555;
  __asm__ volatile("movsd 0(%[b]), %%xmm0\n movsd 8(%[b]), %%xmm1\n movsd 56(%[b]), %%xmm7\n movsd 64(%[b]), %%xmm8\n "
                   "movsd 120(%[b]), %%xmm15\n"
                   "mov %[call], %%eax\n syscall\n"
                   "movsd %%xmm0, 0(%[a])\n movsd %%xmm1, 8(%[a])\n movsd %%xmm7, 56(%[a])\n movsd %%xmm8, 64(%[a])\n "
                   "movsd %%xmm15, 120(%[a])\n"
                   : "=&a"(result), "+r"(r8), "+r"(r9), "+r"(r10), "+r"(r12), "+r"(r13)
                   : [b] "r"(before), [a] "r"(after), "D"(&one), "S"(1L), "d"(-1L), [call] "i"(SYS_poll)
                   : "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm7", "xmm8", "xmm15");
  for (int i = 0; i < 16; i++) general &= (i > 1 && i < 7) || (i > 8 && i < 15) || before[i] == after[i];
  return result == 1 && general && r8 == 0x1111 && r9 == 0x2222 && r10 == 0x3333 && r12 == 0x4444 && r13 == 0x5555;
}
#endif

static const struct {
  const char *name;
  bool (*wait)(void);
} waits[] = {
    {"poll", wait_poll},           {"timed-poll", wait_timed_poll},
    {"epoll", wait_epoll},         {"select", wait_select},
    {"read", wait_read},           {"receive", wait_receive},
    {"semaphore", wait_semaphore}, {"timed-semaphore", wait_timed_semaphore},
    {"sleep", wait_sleep},
#if defined(__x86_64__)
    {"registers", wait_registers},
#endif
};

static void *wait_and_check(void *which) {
  size_t i = (size_t)which;
  errno = 77;
  expect(waits[i].wait(), waits[i].name);
  expect(errno == 77, "errno");
  expect(!cuCtxSetCurrent(context), "cuCtxSetCurrent");
  allocate_by(cuMemAlloc_v2, 1, 6000);
  return NULL;
}

static void begin_cuda(void) {
  uint64_t p;
  fetched = (allocate)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
  expect(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0) && !cuMemAlloc_v2(&p, 4999), "CUDA"); /* and keeps it */
}

static void use_late(const char *library, size_t size) {
  int (*use)(size_t) = (int (*)(size_t))dlsym(dlopen(library, RTLD_NOW), "use_runtime");
  expect(use && !use(size), "a library that is loaded late");
}

static void in_child(long n, size_t size) {
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    uint64_t p;
    for (long i = 0; i < n; i++) cuMemAlloc_v2(&p, size); /* the driver refuses */
    free(malloc(size));
    _exit(0);
  }
  expect(child > 0 && waitpid(child, &status, 0) == child && !status, "a child");
}

/* One line of the input. Where everything is to run, the input is asked without waiting. */
static bool read_line(char *line, size_t room, bool runs) {
  struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
  while (runs && !poll(&in, 1, 0)) count++;
  size_t length = 0;
  while (length + 1 < room && read(STDIN_FILENO, line + length, 1) == 1 && line[length] != '\n') length++;
  line[length] = 0;
  return length > 0;
}

static void answer(const char *line) {
  expect(write(STDOUT_FILENO, line, strlen(line)) > 0 && write(STDOUT_FILENO, "\n", 1) == 1, "write");
}

static void obey(const char *library, bool runs) {
  char line[100];
  answer("ready");
  while (read_line(line, sizeof line, runs) && strcmp(line, "end")) {
    long n = 0;
    size_t size = 0;
    if (sscanf(line, "alloc %ld %zu", &n, &size) == 2) {
      if (!context) begin_cuda();
      allocate_by(cuMemAlloc_v2, n, size);
    }
    if (sscanf(line, "fetched %ld %zu", &n, &size) == 2) allocate_by(fetched, n, size);
    if (sscanf(line, "late %zu", &size) == 1) use_late(library, size);
    if (sscanf(line, "fork %ld %zu", &n, &size) == 2) in_child(n, size);
    answer(line);
  }
}

int main(int argc, char **argv) {
  pthread_t threads[2];
  unsigned started = 0;
  bool waiting = false;
  const char *mode = argc > 1 ? argv[1] : "quiet";
  if (!strcmp(mode, "sleep") && argc > 2) seconds = atol(argv[2]);
  expect(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel) && !sem_init(&semaphore, 0, 0), "socketpair");
  if (strcmp(mode, "nocuda")) begin_cuda();
  if (!strcmp(mode, "storm"))
    for (; started < 2; started++) pthread_create(&threads[started], NULL, malloc_storm, NULL);
  if (!strcmp(mode, "spin")) pthread_create(&threads[started++], NULL, spin, NULL);
  for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
    if (!strcmp(mode, waits[i].name)) waiting = !pthread_create(&threads[started++], NULL, wait_and_check, (void *)i);
  obey(argc > 2 ? argv[2] : NULL, waiting || !strcmp(mode, "spin"));
  over = true;
  if (waiting) expect(write(channel[1], "!", 1) == 1 && !sem_post(&semaphore), "write");
  for (unsigned i = 0; i < started; i++) pthread_join(threads[i], NULL);
  answer("end");
  return 0;
}
