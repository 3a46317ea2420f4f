#define _GNU_SOURCE
#include "boot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "adapter.h"
#include "clock.h"
#include "dict.h"
#include "guest.h"
#include "python.h"
#include "region.h"
#include "relocate.h"
#include "ring.h"
#include "sample.h"
#include "sandbox.h"
#include "unwind.h"

/* A Go runtime takes generously, and ends the process when it cannot have what it wants: address space, writable memory, descriptors, threads. */
#define MT_GO_ADDRESS_SPACE (4ull << 30)
#define MT_GO_DATA (1ull << 30)
#define MT_GO_DESCRIPTORS 32u
#define MT_GO_THREADS 12u /* its drainer makes so many at once at its start (interpose/main.go) and none later */

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif
#define MT_CLOSE_AT_MOST 65536u
#define MT_THREAD_NAME "memtrace"
#define MT_ALONE_CHECK_MS 500
#define MT_TIMER_SLACK_NS 4000000ul

typedef void (*go_entry)(int argc, char **argv, char **environment);

/* The runtime's entry, moved out of .init_array by interpose/lazy.ld. Weak: the C tests link this file without any Go. */
extern go_entry mt_go_init_start[] __attribute__((weak, visibility("hidden")));
extern go_entry mt_go_init_end[] __attribute__((weak, visibility("hidden")));
extern int mtDrainStart(void) __attribute__((weak));

enum { NO_DRAINER, BOOTING, BOOTED };
static uint32_t state;
static bool started_in_an_ancestor; /* survives fork: a runtime is dead in the child and cannot be started twice */

/* What the runtime believes to be the process's start block: argv, environment and auxiliary vector in one row, each ended by a null, as the kernel lays
 * them out. */
enum { ARGV_WORDS = 2, AUXV_WORDS = 64 };
static void *block[ARGV_WORDS + 12 + AUXV_WORDS];

static char spool_variable[MT_PATH_MAX + 32], trace_variable[MT_PATH_MAX + 32], log_variable[32], stderr_variable[64], oom_variable[32];
static char spool_file_variable[32 + MT_FILE_TEXT], trace_file_variable[32 + MT_FILE_TEXT];

static char *variable(char *buffer, const char *name, const char *value) {
  char *p = stpcpy(buffer, name);
  stpcpy(p, value);
  return buffer;
}

static bool make_block(void) {
  static const char *const levels[] = {"off", "error", "warn", "info", "debug"};
  static const char *const oom_texts[] = {"none", "failed", "all"};
  char file[MT_FILE_TEXT];
  void **word = block;
  *word++ = "memtrace";
  *word++ = NULL;
  *word++ = "GODEBUG=asyncpreemptoff=1,updatemaxprocs=0,containermaxprocs=0";
  *word++ = "GOTRACEBACK=none";
  *word++ = "GOMAXPROCS=2";
  *word++ = variable(spool_variable, "MEMTRACE_DRAIN_SPOOL=", mt_region.real_path);
  *word++ = variable(trace_variable, "MEMTRACE_DRAIN_TRACE=", mt_region.output.trace);
  *word++ = variable(spool_file_variable, "MEMTRACE_DRAIN_SPOOL_FILE=", mt_output_file_text(file, mt_region.device, mt_region.inode, mt_region.owner));
  *word++ = variable(trace_file_variable, "MEMTRACE_DRAIN_TRACE_FILE=", mt_output_file_text(file, mt_region.output.device, mt_region.output.inode, mt_region.output.owner));
  *word++ = variable(log_variable, "MEMTRACE_LOG=", levels[mt_config.log_level]);
  *word++ = variable(stderr_variable, "MEMTRACE_STDERR=", mt_guest_stderr());
  *word++ = variable(oom_variable, "MEMTRACE_OOM=", oom_texts[mt_config.oom]);
  *word++ = mt_config.embed_symbols ? "MEMTRACE_EMBED_SYMBOLS=1" : "MEMTRACE_EMBED_SYMBOLS=0";
  *word++ = NULL;
  int fd = open("/proc/thread-self/auxv", O_RDONLY | O_CLOEXEC); /* /proc/self is the first thread, which may have ended */
  if (fd < 0) return false;
  ssize_t n = read(fd, word, AUXV_WORDS * sizeof *word);
  close(fd);
  return n > 0;
}

static int is_go_module(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_NOTE || p->p_memsz < sizeof(ElfW(Nhdr)) + 4) continue;
    const ElfW(Nhdr) *note = (const void *)(info->dlpi_addr + p->p_vaddr);
    uintptr_t own = (uintptr_t)&block;
    bool ours = false;
    for (int j = 0; j < info->dlpi_phnum; j++)
      if (info->dlpi_phdr[j].p_type == PT_LOAD && own - info->dlpi_addr - info->dlpi_phdr[j].p_vaddr < info->dlpi_phdr[j].p_memsz) ours = true;
    if (!ours && note->n_namesz == 4 && !memcmp(note + 1, "Go\0\0", 4)) *(bool *)found = true;
  }
  return 0;
}

static bool limited_below(int resource, uint64_t wanted) {
  struct rlimit limit;
  return !getrlimit(resource, &limit) && limit.rlim_cur < wanted;
}

static bool start_thread(void *(*run)(void *)) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 1 << 20); /* the driver's libraries run on it, too */
  bool started = !pthread_create(&thread, &attributes, run, NULL);
  pthread_attr_destroy(&attributes);
  return started;
}

static uint32_t rehearsal_over, rehearsing;

static void *rehearse(void *unused) {
  (void)unused;
  while (!__atomic_load_n(&rehearsal_over, __ATOMIC_ACQUIRE)) syscall(SYS_futex, &rehearsal_over, FUTEX_WAIT, 0, NULL, NULL, 0);
  __atomic_sub_fetch(&rehearsing, 1, __ATOMIC_RELEASE);
  return NULL;
}

/* Limits on threads are the user's, the container's and the machine's, and what is left of them only a try can tell. */
static bool threads_can_be_had(void) {
  bool all = true;
  for (unsigned i = 0; i < MT_GO_THREADS && all; i++) {
    __atomic_add_fetch(&rehearsing, 1, __ATOMIC_RELAXED);
    all = start_thread(rehearse);
    if (!all) __atomic_sub_fetch(&rehearsing, 1, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&rehearsal_over, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &rehearsal_over, FUTEX_WAKE, MT_GO_THREADS, NULL, NULL, 0);
  while (__atomic_load_n(&rehearsing, __ATOMIC_ACQUIRE)) sched_yield();
  return all;
}

/* Why no Go runtime may be started here, or NULL. */
static const char *refusal(void) {
  bool other_go = false;
  if (!mt_go_init_start || !mtDrainStart || !mt_go_is_quiet()) return "the library was built without its drainer";
  if (limited_below(RLIMIT_AS, MT_GO_ADDRESS_SPACE)) return "the address space limit is too small";
  if (limited_below(RLIMIT_DATA, MT_GO_DATA)) return "the limit on data is too small";
  if (limited_below(RLIMIT_NOFILE, MT_GO_DESCRIPTORS)) return "the limit on open files is too small";
  dl_iterate_phdr(is_go_module, &other_go);
  if (other_go) return "the program has a Go runtime of its own";
  if (!threads_can_be_had()) return "the limit on threads is too small";
  return NULL;
}

/* Gives the calling thread, and with it every thread that the runtime starts, a descriptor table of its own. A program may close all descriptors and reuse
 * the numbers: the runtime would end it over a lost epoll descriptor, and the drainer would write into the program's files. Nothing of the program's may stay
 * open here, or the other end of a pipe would wait for us. Under a filter only the call is tried that containers and service managers let pass. */
static bool leave_descriptors(void) {
#ifdef SYS_close_range
  bool left = !syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE);
#else
  bool left = false;
#endif
  if (!left) {
    struct rlimit most;
    if (mt_sandbox_kind() != MT_SANDBOX_NONE || unshare(CLONE_FILES) || getrlimit(RLIMIT_NOFILE, &most)) return false;
    for (unsigned fd = 0; fd < most.rlim_cur && fd < MT_CLOSE_AT_MOST; fd++) close((int)fd);
  }
  /* 0 to 2 must not become files of ours: the runtime writes to 2 when it dies */
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
    if (fd < 0) fd = open("/", O_RDONLY | O_DIRECTORY);
  } while (fd >= 0 && fd < 2);
  return true;
}

/* The runtime's threads, which come of this one, stand back behind the program's. One that wakes up takes no processor from a thread that runs. And the runtime watches its own work
 * by sleeps of 20 us, some twenty for each millisecond of it, which were most of the times that a drainer stopped a training: with slack they are few. */
static bool stand_back(void) {
  prctl(PR_SET_TIMERSLACK, MT_TIMER_SLACK_NS, 0, 0, 0);
  return sched_getscheduler(0) == SCHED_OTHER && !sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
}

/* Starts the runtime, which touches no signal disposition (internal/lazyrela). False if there is no drainer in the end. */
static bool boot_go(void) {
  bool back = stand_back();
  for (go_entry *entry = mt_go_init_start; entry < mt_go_init_end; entry++) (*entry)(1, (char **)block, (char **)block + ARGV_WORDS);
  bool started = mtDrainStart(); /* waits for the runtime to be up */
  if (back) sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}); /* the program may wait for what this thread does from here on */
  return started;
}

static ssize_t read_file(const char *path, char *text, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t n = read(fd, text, room);
  close(fd);
  return n;
}

/* True when the program's last thread is gone; *status is then what its first one left with. That one stays as a zombie until the process ends; ours carry our
 * name. */
static bool only_ours_left(int *status) {
  char text[1024];
  ssize_t n = read_file("/proc/self/stat", text, sizeof text - 1);
  if (n <= 0) return false;
  text[n] = 0;
  const char *end = strrchr(text, ')'), *last = strrchr(text, ' ');
  if (!end || end[1] != ' ' || end[2] != 'Z') return false;
  *status = atoi(last) >> 8 & 0xff;
  DIR *tasks = opendir("/proc/self/task");
  bool alone = tasks != NULL;
  for (struct dirent *task; alone && (task = readdir(tasks));) {
    if (task->d_name[0] == '.' || atoi(task->d_name) == getpid()) continue;
    char path[sizeof "/proc/self/task//comm" + sizeof task->d_name];
    stpcpy(stpcpy(stpcpy(path, "/proc/self/task/"), task->d_name), "/comm");
    n = read_file(path, text, sizeof text);
    if (n > 0 && (n != sizeof MT_THREAD_NAME || memcmp(text, MT_THREAD_NAME "\n", (size_t)n))) alone = false;
  }
  if (tasks) closedir(tasks);
  return alone;
}

/* A process whose first thread left by pthread_exit ends with its last thread. The runtime's threads would keep it for ever, so ours do what the C library does
 * for the last one: the drainer's starter, on descriptors of its own, looks; the boot thread, on the program's, leaves. */
static uint32_t alone;
static int alone_status;

/* Says why the records stay in the spool. */
static void stay_without(const char *why) {
  mt_dict_info("drain", why, strlen(why));
  mt_log(MT_LOG_INFO, "records stay in the spool: ", why, "");
  __atomic_store_n(&state, NO_DRAINER, __ATOMIC_RELEASE);
}

static uint32_t turns; /* futex: asked for */

void mt_boot_turn(void) {
  int error = errno;
  __atomic_add_fetch(&turns, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &turns, FUTEX_WAKE, 1, NULL, NULL, 0);
  errno = error;
}

static void *drain_thread(void *unused) {
  (void)unused;
  if (leave_descriptors()) __atomic_store_n(&state, boot_go() ? BOOTED : NO_DRAINER, __ATOMIC_RELEASE);
  else stay_without("no descriptors of our own can be had");
  const struct timespec pause = {.tv_nsec = MT_ALONE_CHECK_MS * 1000000l};
  while (!only_ours_left(&alone_status)) {
    uint32_t before = __atomic_load_n(&turns, __ATOMIC_ACQUIRE);
    mt_ring_spare();
    mt_python_turn();
    mt_adapter_turn();
    mt_unwind_refresh();
    syscall(SYS_futex, &turns, FUTEX_WAIT, before, &pause, NULL, 0);
  }
  __atomic_store_n(&alone, 1, __ATOMIC_RELEASE);
  mt_sample_wake(MT_OCCASION_NONE);
  return NULL;
}

static void *boot_thread(void *unused) {
  (void)unused;
  prctl(PR_SET_NAME, MT_THREAD_NAME, 0, 0, 0);
  mt_clock_refresh(mt_header());
  if (mt_go_init_start) mt_python_turn(); /* a short program is over before the runtime is up, and would not tell of its end */
  const char *why = refusal();
  if (!why && !make_block()) why = "/proc is not there";
  if (!why && !mt_relocate_go()) why = "the system does not let the library change its own memory protection";
  if (!why && !start_thread(drain_thread)) why = "no thread for the drainer";
  if (why) return mt_sample_off(why), stay_without(why), NULL;
  mt_sample_run(&alone);
  if (alone_status) _exit(alone_status); /* it left behind the C library's back */
  exit(0);
}

/* A child of a process that had threads of ours has nothing that one could do: that runtime is dead here, and so is the driver. After a raw clone() the C library's
 * locks may be held by threads that do not exist here, ours among them from their first moment, so none is started. */
static bool inherited(void) {
  if (!started_in_an_ancestor) {
    started_in_an_ancestor = true;
    return false;
  }
  static const char why[] = "forked from a process that was recording";
  mt_sample_off(why);
  stay_without(why);
  return true;
}

void mt_boot_start(void) {
  sigset_t all, before;
  if (inherited()) return;
  /* A program that filters its own system calls may have itself killed over the ones that a runtime makes, a new thread among them. */
  if (mt_sandbox_kind() == MT_SANDBOX_OWN) {
    static const char why[] = "the program filters its system calls (seccomp)";
    mt_sample_off(why);
    return stay_without(why);
  }
  __atomic_store_n(&state, BOOTING, __ATOMIC_RELEASE);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the program may ever run on our threads */
  if (!start_thread(boot_thread)) {
    mt_sample_off("no thread for it");
    __atomic_store_n(&state, NO_DRAINER, __ATOMIC_RELEASE);
    mt_log(MT_LOG_WARN, "no thread for the drainer; records stay in the spool", "", "");
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool mt_boot_draining(void) { return __atomic_load_n(&state, __ATOMIC_ACQUIRE) != NO_DRAINER && mt_header()->drain_state != 2; }
