/* What programs do that a preloaded library must survive unnoticed:  manners MODE. Every mode prints the same with and without the library. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"

static void check(int result, const char *what) {
  if (!result) return;
  printf("%s gave %d\n", what, result);
  fflush(stdout);
  _exit(9);
}

static void start_cuda(void) {
  void *context;
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
}

static void allocate(size_t size, int times) {
  uint64_t p;
  for (int i = 0; i < times; i++) {
    check(cuMemAlloc_v2(&p, size), "cuMemAlloc");
    check(cuMemFree_v2(p), "cuMemFree");
  }
}

static void begin(void) {
  start_cuda();
  allocate(1000, 100);
}

static void wait_for(pid_t child) {
  int status;
  if (waitpid(child, &status, __WALL) != child) printf("no child\n");
  else printf("child ended with %#x\n", status);
}

static void child_uses_cuda(void) {
  start_cuda();
  allocate(2000, 10);
  fflush(stdout);
}

static void fork_before(void) {
  pid_t child = fork();
  if (!child) {
    child_uses_cuda();
    exit(3);
  }
  wait_for(child);
  begin();
}

static void fork_after(void) {
  begin();
  for (int i = 0; i < 5; i++) {
    pid_t child = fork();
    if (!child) _exit(i);
    wait_for(child);
  }
  pid_t child = fork(); /* what a server's worker does: work, leave by exit() with the parent's atexit handlers */
  if (!child) exit(7);
  wait_for(child);
  allocate(1000, 100);
}

static void fork_threads(void) {
  begin();
  for (int i = 0; i < 20; i++) {
    pid_t child = fork();
    if (!child) {
      uint64_t p;
      cuMemAlloc_v2(&p, 3000); /* refused by a driver that was initialised in the parent, but the hook has seen it */
      exit(0);
    }
    wait_for(child);
  }
}

static void vfork_exec(void) {
  begin();
  pid_t child = vfork();
  if (!child) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(127);
  }
  wait_for(child);
  allocate(1000, 100);
}

static int cloned(void *unused) {
  (void)unused;
  uint64_t p;
  cuMemAlloc_v2(&p, 3000);
  return 5;
}

static void raw_clone(void) {
  begin();
  static char stack[256 << 10] __attribute__((aligned(16)));
  wait_for(clone(cloned, stack + sizeof stack, SIGCHLD, NULL)); /* a copy of the process, behind the C library's back */
  long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (!child) _exit(cloned(NULL));
  wait_for((pid_t)child);
  allocate(1000, 100);
}

static void *worker(void *context) {
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  allocate(1000, 5);
  return NULL;
}

static void threads(void) {
  void *context;
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
  for (int round = 0; round < 40; round++) {
    pthread_t t[16];
    for (int i = 0; i < 16; i++) check(pthread_create(&t[i], NULL, worker, context), "pthread_create");
    for (int i = 0; i < 16; i++) pthread_join(t[i], NULL);
  }
}

static void quick_exit_mode(void) {
  begin();
  _exit(42);
}

static void abort_mode(void) {
  begin();
  abort();
}

static void on_segv(int number, siginfo_t *info, void *unused) {
  (void)unused;
  static const char text[] = "handler ran\n";
  if (number == SIGSEGV && info->si_addr == (void *)16 && write(1, text, sizeof text - 1) > 0) _exit(77);
  _exit(78);
}

static void crash(void) {
  static volatile uintptr_t nowhere = 16;
  *(volatile int *)nowhere = 1;
}

static void segv_handled(void) {
  struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  begin();
  usleep(100000); /* by now the drainer's runtime has been up */
  crash();
}

static void segv_plain(void) {
  begin();
  usleep(100000);
  crash();
}

static void dispositions(void) {
  begin();
  usleep(200000);
  for (int number = 1; number < 32; number++) {
    struct sigaction action;
    if (number == SIGKILL || number == SIGSTOP) continue;
    if (sigaction(number, NULL, &action) || action.sa_handler != SIG_DFL) printf("signal %d is not at its default\n", number);
  }
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  for (int number = 1; number < 65; number++)
    if (sigismember(&blocked, number) == 1) printf("signal %d is blocked\n", number);
}

static void broken_pipe(void) {
  begin();
  int ends[2];
  check(pipe(ends), "pipe");
  close(ends[0]);
  if (write(ends[1], "x", 1) < 0) printf("still here\n");
}

static volatile sig_atomic_t ticks;
static void on_tick(int number) {
  (void)number;
  uint64_t p;
  int error = errno;
  ticks++;
  if (!cuMemAlloc_v2(&p, 0)) ticks += 1000000; /* a call in a handler, that fails at once */
  errno = error;
}

static void signals(void) {
  struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  start_cuda(); /* the null driver locks, so it must not be interrupted by itself: block around its calls, not around ours */
  struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, NULL);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  for (int i = 0; i < 20000 || ticks < 200; i++) {
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    allocate(1000, 1);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
  }
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  printf("%s\n", ticks >= 1000000 ? "an empty allocation succeeded" : "ticked");
}

static void close_all(void) {
  begin();
  usleep(100000);
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
  usleep(100000);
  for (int fd = 0; fd < 3; fd++) close(fd);
  for (int fd = 0; fd < 3; fd++)
    if (open("/dev/null", O_RDWR) != fd) _exit(8);
  allocate(1000, 100);
}

static void change_root(void) {
  begin();
  if (chroot(".") || chdir("/")) printf("chroot: %s\n", strerror(errno));
  allocate(1000, 20000);
}

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

static void no_descriptors(void) {
  struct rlimit limit = {64, 64};
  setrlimit(RLIMIT_NOFILE, &limit);
  start_cuda();
  int last = -1, fd;
  while ((fd = open("/dev/null", O_RDONLY)) >= 0) last = fd;
  printf("last descriptor %d, then %s\n", last, strerror(errno));
  allocate(1000, 20000);
}

static void file_size(void) {
  struct rlimit limit = {300 << 10, 300 << 10};
  start_cuda();
  setrlimit(RLIMIT_FSIZE, &limit);
  allocate(1000, 20000);
}

static void file_size_later(void) {
  struct rlimit limit = {64 << 10, 64 << 10};
  begin();
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 20; i++) {
    allocate(1000 + (size_t)i, 5000);
    usleep(60000);
  }
}

static void address_space(void) {
  start_cuda();
  allocate(1000, 20000);
}

static void no_environment(void) {
  clearenv();
  begin();
}

static void delete_files(void) {
  begin();
  usleep(100000);
  if (system("rm -f ./*.bin ./*.spool")) printf("rm failed\n");
  allocate(1000, 40000);
}

static void keeps_errno(void) {
  uint64_t p, handle;
  void *host;
  int wrong = 0;
  size_t pitch;
  static char own[8192] __attribute__((aligned(4096)));
  start_cuda();
#define KEEPS(call)                                                    \
  for (int i = 0; i < 3; i++) {                                        \
    errno = 4711;                                                      \
    int result = call;                                                 \
    if (errno != 4711) wrong++, printf("%s sets errno\n", #call);      \
    if (result && i == 0) printf("%s gives %d\n", #call, result);      \
  }
  KEEPS(cuMemAlloc_v2(&p, 512));
  KEEPS(cuMemAlloc_v2(&p, (size_t)1 << 50));
  KEEPS(cuMemAllocManaged(&p, 512, 1));
  KEEPS(cuMemAllocHost_v2(&host, 512));
  KEEPS(cuMemFreeHost((void *)16));
  KEEPS(cuMemHostAlloc(&host, 512, 0));
  KEEPS(cuMemAllocAsync(&p, 512, NULL));
  KEEPS(cuMemFreeAsync(16, NULL));
  KEEPS(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 4));
  KEEPS(cuMemFree_v2(16));
  KEEPS(cuMemFree_v2(0));
  KEEPS(cuMemCreate(&handle, 2 << 20, NULL, 0));
  KEEPS(cuMemRelease(16));
  KEEPS(cuMemHostRegister_v2(own, sizeof own, 0));
  KEEPS(cuMemHostUnregister(own));
  printf("%d wrong\n", wrong);
}

static void *shared_context;
static void *one_event(void *barrier) {
  uint64_t p;
  if (!cuCtxSetCurrent(shared_context)) cuMemAlloc_v2(&p, 777);
  pthread_barrier_wait(barrier);
  return NULL;
}

static void quiet_threads(void) {
  enum { COUNT = 1000 };
  static pthread_t t[COUNT];
  pthread_barrier_t barrier;
  pthread_attr_t small;
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&shared_context, 0, 0), "cuCtxCreate");
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  pthread_barrier_init(&barrier, NULL, COUNT);
  for (int i = 0; i < COUNT; i++) check(pthread_create(&t[i], &small, one_event, &barrier), "pthread_create");
  for (int i = 0; i < COUNT; i++) pthread_join(t[i], NULL);
}

static void say_goodbye(void) { printf("goodbye\n"); }

static pthread_barrier_t together;
static void *outlives_main(void *unused) {
  (void)unused;
  usleep(100000);
  atexit(say_goodbye);
  return NULL;
}

/* The process ends with its last thread, and then runs its handlers. */
static void leave_main(void) {
  pthread_t t;
  begin();
  check(pthread_create(&t, NULL, outlives_main, NULL), "pthread_create");
  pthread_exit(NULL);
}

static void *first_call(void *context) {
  uint64_t p;
  pthread_barrier_wait(&together);
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuMemAlloc_v2(&p, 888), "cuMemAlloc");
  return NULL;
}

/* Children whose first calls come from several threads at once. */
static void race_to_start(void) {
  for (int round = 0; round < 30; round++) {
    pid_t child = fork();
    if (!child) {
      void *context;
      pthread_t t[8];
      check(cuInit(0), "cuInit");
      check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
      pthread_barrier_init(&together, NULL, 8);
      for (int i = 0; i < 8; i++) check(pthread_create(&t[i], NULL, first_call, context), "pthread_create");
      for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
      exit(0);
    }
    wait_for(child);
  }
}

static const struct {
  const char *name;
  void (*run)(void);
} modes[] = {
    {"plain", begin}, {"fork-before", fork_before}, {"fork-after", fork_after}, {"fork-calls", fork_threads}, {"vfork", vfork_exec}, {"clone", raw_clone},
    {"threads", threads}, {"_exit", quick_exit_mode}, {"abort", abort_mode}, {"segv-handled", segv_handled}, {"segv", segv_plain}, {"dispositions", dispositions},
    {"pipe", broken_pipe}, {"signals", signals}, {"closefrom", close_all}, {"daemon", daemon_like}, {"chroot", change_root}, {"chdir", change_folder},
    {"gone", gone_folder}, {"nofile", no_descriptors}, {"fsize", file_size}, {"fsize-later", file_size_later}, {"as", address_space}, {"clearenv", no_environment},
    {"delete", delete_files}, {"errno", keeps_errno}, {"quiet", quiet_threads}, {"race", race_to_start}, {"pthread_exit", leave_main},
};

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(argv[1], modes[i].name)) {
      modes[i].run();
      printf("end\n");
      return 0;
    }
  fprintf(stderr, "no such mode\n");
  return 2;
}
