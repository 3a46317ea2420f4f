#define _GNU_SOURCE
#include "process/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "adapters/adapter.h"
#include "base/atload.h"
#include "base/clock.h"
#include "base/sandbox.h"
#include "base/sys.h"
#include "device/sampler.h"
#include "process/control.h"
#include "process/gomemory.h"
#include "process/recorder.h"
#include "process/relocate.h"
#include "process/search.h"
#include "process/initialstack.h"
#include "python/python.h"
#include "spool/dict.h"
#include "spool/region.h"
#include "spool/ring.h"
#include "unwind/unwind.h"

#define MT_GO_DESCRIPTORS 32u
#define MT_GO_THREADS 12u /* its drainer makes so many at once at its start (interpose/main.go) and none later */

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif
#define MT_CLOSE_AT_MOST 65536u
#define MT_STACK (1u << 20)      /* the driver's libraries run on it, too */
#define MT_GO_STACK (256u << 10) /* nothing but the runtime runs on it */
#define MT_ALONE_CHECK_MS 500
#define MT_SOON_ALONE_CHECK_MS 10 /* once the first thread has left */
#define MT_TIMER_SLACK_NS 4000000ul

typedef void (*go_entry)(int argc, char **argv, char **environment);

/* The runtime's entry, moved out of .init_array by interpose/lazy.ld. Weak: the C tests link this file without Go. */
extern go_entry mt_go_init_start[] __attribute__((weak, visibility("hidden")));
extern go_entry mt_go_init_end[] __attribute__((weak, visibility("hidden")));
extern int mtDrainStart(void) __attribute__((weak));

static bool started_in_an_ancestor; /* survives fork: a runtime is dead in the child and cannot be started twice */

static int is_go_module(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_NOTE || p->p_memsz < sizeof(ElfW(Nhdr)) + 4) continue;
    const ElfW(Nhdr) *note = (const void *)(info->dlpi_addr + p->p_vaddr);
    uintptr_t own = (uintptr_t)&mt_initial_stack;
    bool ours = false;
    for (int j = 0; j < info->dlpi_phnum; j++)
      if (info->dlpi_phdr[j].p_type == PT_LOAD &&
          own - info->dlpi_addr - info->dlpi_phdr[j].p_vaddr < info->dlpi_phdr[j].p_memsz)
        ours = true;
    if (!ours && note->n_namesz == 4 && !memcmp(note + 1, "Go\0\0", 4)) *(bool *)found = true;
  }
  return 0;
}

static bool limited_below(int resource, uint64_t wanted) {
  struct rlimit limit;
  return !mt_sys_getrlimit(resource, &limit) && limit.rlim_cur < wanted;
}

bool mt_boot_thread(void *(*run)(void *), size_t stack) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack);
  bool started = !pthread_create(&thread, &attributes, run, NULL);
  pthread_attr_destroy(&attributes);
  return started;
}

static uint32_t probes_done, probes_running;

static void *probe_thread(void *unused) {
  (void)unused;
  while (!__atomic_load_n(&probes_done, __ATOMIC_ACQUIRE)) mt_sys_futex_wait(&probes_done, 0, 0);
  __atomic_sub_fetch(&probes_running, 1, __ATOMIC_RELEASE);
  return NULL;
}

static bool start_probe_thread(void) {
  __atomic_add_fetch(&probes_running, 1, __ATOMIC_RELAXED);
  bool started = mt_boot_thread(probe_thread, mt_go_stack);
  if (!started) __atomic_sub_fetch(&probes_running, 1, __ATOMIC_RELAXED);
  return started;
}

/* Limits on threads are the user's (RLIMIT_NPROC), the container's (pids.max) and the machine's: only creating some
 * shows what is left. */
static bool can_create_threads(void) {
  mt_go_stack = MT_GO_STACK;
  bool all = start_probe_thread();
  if (!all) { /* the program's thread-local variables, which lie in there, may be large */
    mt_go_stack = MT_STACK;
    all = start_probe_thread();
  }
  for (unsigned i = 1; i < MT_GO_THREADS && all; i++) all = start_probe_thread();
  __atomic_store_n(&probes_done, 1, __ATOMIC_RELEASE);
  mt_sys_futex_wake(&probes_done, MT_GO_THREADS);
  while (__atomic_load_n(&probes_running, __ATOMIC_ACQUIRE)) mt_sys_yield();
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
  if (!can_create_threads()) return "the limit on threads is too small";
  return NULL;
}

/* Gives the calling thread, and with it every thread that the runtime starts, a descriptor table of its own. A program
 * may close all descriptors and reuse the numbers: the runtime would end it over a lost epoll descriptor, and the
 * drainer would write into the program's files. Nothing of the program's may stay open here, or the other end of a pipe
 * would wait for us. Under a filter only the call is tried that containers and service managers let pass. */
bool mt_boot_unshare_descriptors(void) {
#ifdef SYS_close_range
  bool left = !mt_sys(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE);
#else
  bool left = false;
#endif
  if (!left) {
    struct rlimit most;
    if (mt_sandbox_kind() != MT_SANDBOX_NONE || mt_sys(SYS_unshare, CLONE_FILES) ||
        mt_sys_getrlimit(RLIMIT_NOFILE, &most))
      return false;
    for (unsigned fd = 0; fd < most.rlim_cur && fd < MT_CLOSE_AT_MOST; fd++) mt_sys_close((int)fd);
  }
  /* 0 to 2 must not become files of the library's: the runtime writes to 2 when it dies */
  int fd;
  do {
    fd = mt_sys_open("/dev/null", O_RDWR, 0);
    if (fd < 0) fd = mt_sys_open("/", O_RDONLY | O_DIRECTORY, 0);
  } while (fd >= 0 && fd < 2);
  return true;
}

/* Lowers the priority of the runtime's threads, which inherit it: SCHED_BATCH (sched(7)) does not preempt a running
 * thread on wake-up, and timer slack spares most of sysmon's sleeps of 20 us, most of a drainer's interruptions. A
 * filter may kill over a change of the policy (systemd's SystemCallFilter=~@resources): then it is not changed. */
static bool lower_drainer_priority(void) {
  mt_sys(SYS_prctl, PR_SET_TIMERSLACK, MT_TIMER_SLACK_NS);
  return !mt_sandbox_may_kill() && mt_sys(SYS_sched_getscheduler, 0) == SCHED_OTHER &&
         !mt_sys(SYS_sched_setscheduler, 0, SCHED_BATCH, &(struct sched_param){0});
}

/* Starts the runtime, which touches no signal disposition (tools/patchruntime). False if no drainer comes of it. */
static bool boot_go(void) {
  bool back = lower_drainer_priority();
  for (go_entry *entry = mt_go_init_start; entry < mt_go_init_end; entry++)
    (*entry)(1, (char **)mt_initial_stack, (char **)mt_initial_stack + MT_INITIAL_ARGV);
  bool started = mtDrainStart(); /* waits for the runtime to be up */
  if (back) /* the program may wait for this thread's later work */
    mt_sys(SYS_sched_setscheduler, 0, SCHED_OTHER, &(struct sched_param){0});
  return started;
}

static bool is_library_thread(const char *task) {
  char path[64], name[64];
  if (strlen(task) > 20) return false;
  stpcpy(stpcpy(stpcpy(path, "/proc/self/task/"), task), "/comm");
  ssize_t n = mt_sys_read_file(path, name, sizeof name);
  return n <= 0 || !strcmp(name, MT_THREAD_NAME "\n");
}

/* As the kernel lists a folder. */
struct entry {
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t kind;
  char name[];
};

static bool all_are_library_threads(int tasks, int32_t first) {
  char list[2048] __attribute__((aligned(8)));
  for (ssize_t n; (n = mt_sys(SYS_getdents64, tasks, list, sizeof list)) > 0;)
    for (ssize_t at = 0; at < n; at += ((struct entry *)(list + at))->size) {
      const char *task = ((struct entry *)(list + at))->name;
      if (task[0] != '.' && atoi(task) != first && !is_library_thread(task)) return false;
    }
  return true;
}

static bool outlived; /* the first thread, by another one of the program's */

/* A process all of whose threads have ended has the exit code of its first thread up to Linux 5.19, and of its last one
 * since. The last thread was not killed by a filter, or that is unknown. */
static bool ends_as_its_last(void) {
  struct utsname names;
  return outlived && !mt_sys(SYS_uname, &names) && atoi(names.release) >= 6;
}

/* True when the program's last thread has ended; *status is then the first one's, as for wait(2): that one is a zombie.
 */
static bool only_library_threads_left(int *status) {
  char text[1024];
  if (mt_sys_read_file("/proc/self/stat", text, sizeof text) <= 0) return false;
  const char *end = strrchr(text, ')'), *last = strrchr(text, ' ');
  if (!end || end[1] != ' ' || end[2] != 'Z') return false;
  *status = atoi(last);
  int tasks = mt_sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (tasks < 0) return false;
  bool alone = all_are_library_threads(tasks, mt_sys_getpid());
  if (!alone) outlived = true;
  mt_sys_close(tasks);
  return alone;
}

/* A process whose first thread left by pthread_exit ends with its last thread, and the runtime's never end. So the
 * drainer's starter, on descriptors of its own, checks for that; the boot thread, on the program's, exits. */
static uint32_t alone;
static int alone_status;

static void disable_drainer(const char *why) {
  mt_dict_info("drain", why, strlen(why));
  mt_log(MT_LOG_INFO, "records stay in the spool: ", why, "");
  __atomic_store_n(&mt_drainer, MT_DRAINER_NONE, __ATOMIC_RELEASE);
}

enum { GO_RUNS, GO_ENDED, GO_REPORTED };
static uint32_t go_ended;

static uint32_t first_left;
static const int32_t *first
    MT_AT_LOAD; /* the first thread's id, which the kernel clears when that thread ends; NULL: unknown */

void mt_boot_prepare(void) {
#ifdef PR_GET_TID_ADDRESS
  if (mt_sys_gettid() != mt_sys_getpid() || mt_sys(SYS_prctl, PR_GET_TID_ADDRESS, &first))
    first = NULL; /* it may be unmapped with another thread */
#endif
}

void mt_boot_thread_ends(int32_t tid) {
  int32_t process = mt_header()->pid; /* that records: this one */
  if (tid == process || (first && __atomic_load_n(first, __ATOMIC_RELAXED) != process))
    __atomic_store_n(&first_left, 1, __ATOMIC_RELEASE);
  if (__atomic_load_n(&first_left, __ATOMIC_ACQUIRE)) mt_wake_poll();
}

/* Time until the next check whether the program has ended. */
static uint64_t next_check_ns(void) {
  bool soon = outlived || __atomic_load_n(&first_left, __ATOMIC_ACQUIRE);
  return (soon ? MT_SOON_ALONE_CHECK_MS : MT_ALONE_CHECK_MS) * 1000000ull;
}

/* The polling loop, beside the program's threads, until the program has ended. */
static void poll_loop(void) {
  while (!only_library_threads_left(&alone_status)) {
    uint32_t before = __atomic_load_n(&mt_poll_count, __ATOMIC_ACQUIRE);
    mt_ring_preallocate();
    mt_python_poll();
    mt_adapter_poll();
    mt_search_poll();
    mt_unwind_refresh();
    mt_sys_futex_wait(&mt_poll_count, before, next_check_ns());
  }
  __atomic_store_n(&alone, 1, __ATOMIC_RELEASE);
  mt_wake_sampler(MT_OCCASION_NONE);
}

static void *drain_thread(void *unused) {
  (void)unused;
  uint32_t booting = MT_DRAINER_BOOTS;
  if (!mt_boot_unshare_descriptors()) disable_drainer("no descriptors of our own can be had");
  else if (!__atomic_compare_exchange_n(&mt_drainer, &booting, boot_go() ? MT_DRAINER_BOOTED : MT_DRAINER_NONE, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return NULL; /* the runtime ended meanwhile, and another thread takes the turns */
  mt_control_serve();
  poll_loop();
  return NULL;
}

/* On the thread that found that it cannot go on. If the runtime was not up yet, the drainer's starter waits for it for
 * ever, and this thread does the rest of its work. */
void mt_boot_go_ended(void) {
  uint32_t booting = MT_DRAINER_BOOTS;
  bool early =
      __atomic_compare_exchange_n(&mt_drainer, &booting, MT_DRAINER_NONE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  __atomic_store_n(&mt_header()->drain_state, MT_DRAINER_FAILED, __ATOMIC_RELEASE);
  mt_sys_futex_wake(&mt_header()->control, INT32_MAX);
  __atomic_store_n(&go_ended, GO_ENDED, __ATOMIC_RELEASE);
  mt_wake_sampler(MT_OCCASION_NONE);
  mt_sys(SYS_prctl, PR_SET_NAME, MT_THREAD_NAME);
  if (early) poll_loop();
}

/* By the sampler's thread, which has the program's descriptors. */
static void notify_go_end(void) {
  uint32_t ended = GO_ENDED;
  if (!__atomic_compare_exchange_n(&go_ended, &ended, GO_REPORTED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  static const char why[] = "the Go runtime could not go on";
  mt_dict_info("drain", why, sizeof why - 1);
  mt_log(MT_LOG_ERROR, "draining stopped, records stay in the spool: ", why, "");
}

/* The program's first thread was killed, and no other is left: a filter of system calls kills the thread that makes one
 * that it forbids, and the process would have ended by that signal. Its parent must see it do so, with a core dump if
 * the signal's is one. */
static void end_by_signal(int number) {
  const struct {
    void (*handler)(int);
    unsigned long flags;
    void *restorer;
    uint64_t mask;
  } standard = {.handler = SIG_DFL};
  mt_sys(SYS_rt_sigaction, number, &standard, NULL, sizeof standard.mask);
  mt_sys_set_blocked(MT_SYS_ALL_SIGNALS & ~MT_SYS_SIGNAL(number));
  mt_sys(SYS_tgkill, mt_sys_getpid(), mt_sys_gettid(), number);
  mt_sys_exit_group(128 + number); /* the first process of a container is not ended by a signal of its own */
}

_Noreturn void mt_boot_end_alone(void) {
  if (alone_status && ends_as_its_last()) _exit(0);
  if (alone_status & 0x7f) end_by_signal(alone_status & 0x7f);
  if (alone_status) _exit(alone_status >> 8 & 0xff); /* it exited by a raw system call */
  exit(0);
}

bool mt_boot_is_alone(void) { return only_library_threads_left(&alone_status); }
static void *boot_thread(void *unused) {
  (void)unused;
  mt_sys(SYS_prctl, PR_SET_NAME, MT_THREAD_NAME);
  if (mt_clock_tsc_disabled()) mt_sys(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE); /* here: Go reads it */
  mt_clock_refresh(mt_header());
  if (mt_go_init_start) mt_python_poll(); /* a short program ends before the runtime is up */
  const char *why = refusal();
  if (!why && !mt_sys_exists("/proc/thread-self/auxv"))
    why = "/proc is not there"; /* it lists the remaining threads */
  mt_initial_stack_build();
  if (!why && !mt_relocate_go()) why = "the system does not let the library change its own memory protection";
  if (!why && !mt_boot_thread(drain_thread, MT_STACK)) why = "no thread for the drainer";
  if (why) return mt_sampler_disable(why), disable_drainer(why), NULL;
  mt_sampler_run(&alone, notify_go_end);
  mt_boot_end_alone();
}

/* In a child of a process that had library threads nothing can be started: that runtime is dead here, and so is the
 * driver. After a raw clone() the C library's locks may be held by threads that do not exist here, so no thread is
 * started. */
static bool is_forked_from_recording(void) {
  if (!started_in_an_ancestor) {
    started_in_an_ancestor = true;
    return false;
  }
  static const char why[] = "forked from a process that was recording";
  mt_sampler_disable(why);
  disable_drainer(why);
  return true;
}

void mt_boot_start(void) {
  if (is_forked_from_recording()) return;
  /* A program that filters its own system calls may have itself killed over the ones that a runtime makes, a new thread
   * among them. */
  if (mt_sandbox_kind() == MT_SANDBOX_OWN) {
    static const char why[] = "the program filters its system calls (seccomp)";
    mt_sampler_disable(why);
    return disable_drainer(why);
  }
  if (first && *first && *first != mt_sys_getpid()) first = NULL; /* in a child that another thread forked */
  mt_sampler_prepare();
  __atomic_store_n(&mt_drainer, MT_DRAINER_BOOTS, __ATOMIC_RELEASE);
  uint64_t before = mt_sys_block(MT_SYS_ALL_SIGNALS); /* no signal handler of the program may run on the library's
                                                         threads */
  if (!mt_boot_thread(boot_thread, MT_STACK)) {
    mt_sampler_disable("no thread for it");
    disable_drainer("no thread for the drainer");
  }
  mt_sys_set_blocked(before);
}

void mt_boot_wait(unsigned limit_ms) {
  uint64_t give_up = mt_clock_monotonic() + limit_ms * 1000000ull;
  while (__atomic_load_n(&mt_drainer, __ATOMIC_ACQUIRE) == MT_DRAINER_BOOTS && mt_clock_monotonic() < give_up)
    mt_sys_sleep(500000);
}
