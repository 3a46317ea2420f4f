#define _GNU_SOURCE
#include "process/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "process/boot.h"
#include "record/capture.h"
#include "base/clock.h"
#include "base/complaint.h"
#include "base/config.h"
#include "hooks/context.h"
#include "spool/dict.h"
#include "elf/foreign.h"
#include "process/leave.h"
#include "process/limit.h"
#include "unwind/module.h"
#include "nvtx/nvtx.h"
#include "spool/region.h"
#include "hooks/reserve.h"
#include "spool/ring.h"
#include "base/sys.h"
#include "record/tag.h"
#include "hooks/unseen.h"

/* How long the end of the program may wait for the drainer. It is busy for milliseconds; the limit only matters when the machine hangs. */
#define MT_STOP_WAIT_MS 5000u

__thread struct mt_thread *mt_self __attribute__((tls_model("initial-exec")));

static struct mt_live not_started;
struct mt_live *mt_live = &not_started;

enum phase { IDLE, STARTING, READY, OFF, ENDED /* off, after READY */ };

/* pid << 32 | phase. Survives fork on purpose: the pid tells whether the phase is this process's own. One word, or two threads might both start. */
static uint64_t life;
static uint64_t last_epoch;
static uint64_t free_threads; /* tag << 48 | address: a stack of recycled mt_thread blocks */
static struct mt_thread *all_threads; /* every block that was ever made */
static pthread_key_t thread_end;
static bool thread_end_made;

/* Writes to a pipe that may be broken, without the signal: it would end a program that never wrote there itself. */
static void write_quietly(int fd, const struct iovec *parts, int count) {
  const uint64_t pipe_only = MT_SYS_SIGNAL(SIGPIPE), before = mt_sys_block(pipe_only);
  uint64_t pending = 0;
  mt_sys(SYS_rt_sigpending, &pending, sizeof pending);
  if (mt_sys_writev(fd, parts, count) < 0 && errno == EPIPE && !(pending & pipe_only)) mt_sys(SYS_rt_sigtimedwait, &pipe_only, NULL, &(struct timespec){0}, sizeof pipe_only);
  mt_sys_set_blocked(before);
}

static struct stat stderr_at_load; /* st_ino 0: there was none */

/* Taken at load, at 0.2 us for every process, since a program that turns itself into a service reuses the number long before its first CUDA call. One that
 * redirects its own messages loses ours with it: better than a line in the middle of its data. */
static bool stderr_is_the_users(void) {
  struct stat now;
  return stderr_at_load.st_ino && !mt_sys_fstat(STDERR_FILENO, &now) && now.st_ino == stderr_at_load.st_ino && now.st_dev == stderr_at_load.st_dev;
}

static char *put_number(char *at, uint64_t n) {
  char digits[24];
  int i = sizeof digits;
  digits[--i] = 0;
  do digits[--i] = (char)('0' + n % 10), n /= 10;
  while (n);
  return stpcpy(at, digits + i);
}

const char *mt_guest_stderr(void) {
  static char text[48];
  if (stderr_at_load.st_ino) put_number(stpcpy(put_number(text, stderr_at_load.st_dev), ":"), stderr_at_load.st_ino);
  return text;
}

void mt_log(enum mt_log_level level, const char *a, const char *b, const char *c) {
  if ((int)level > mt_config.log_level) return;
  int error = errno;
  static const char prefix[] = "memtrace: ", end[] = "\n";
  struct iovec parts[5] = {{(void *)prefix, sizeof prefix - 1}, {(void *)a, strlen(a)}, {(void *)b, strlen(b)}, {(void *)c, strlen(c)}, {(void *)end, 1}};
  if (stderr_is_the_users()) write_quietly(STDERR_FILENO, parts, 5);
  errno = error;
}

static uint64_t life_in(enum phase phase) { return (uint64_t)(uint32_t)mt_sys_getpid() << 32 | phase; }

static void set_phase(enum phase phase) { __atomic_store_n(&life, life_in(phase), __ATOMIC_RELEASE); }

#pragma weak strerrordesc_np

void mt_fail(const char *what, int error) {
  set_phase(OFF);
  mt_log(MT_LOG_ERROR, "recording is off: ", what, "");
  if (error) mt_log(MT_LOG_ERROR, "the system says: ", strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error", "");
}

/* Recycles a thread's block when the thread ends. A hook that runs in a later destructor attaches anew, and this runs again. */
static void on_thread_end(void *block) {
  struct mt_thread *self = block;
  int32_t tid = self->epoch == mt_live->epoch ? self->ring->tid : 0;
  if (tid) mt_ring_retire(self);
  self->epoch = MT_EPOCH_NONE;
  mt_self = NULL;
  uint64_t head = __atomic_load_n(&free_threads, __ATOMIC_RELAXED), want;
  do {
    __atomic_store_n(&self->free_next, (struct mt_thread *)(head & 0xffffffffffffull), __ATOMIC_RELAXED);
    want = ((head >> 48) + 1) << 48 | (uint64_t)self;
  } while (!__atomic_compare_exchange_n(&free_threads, &head, want, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  if (tid) mt_boot_thread_ends(tid);
}

static struct mt_thread *new_block(void) {
  uint64_t head = __atomic_load_n(&free_threads, __ATOMIC_ACQUIRE);
  while (head & 0xffffffffffffull) { /* blocks are never unmapped, so reading free_next of a lost race is safe */
    struct mt_thread *block = (struct mt_thread *)(head & 0xffffffffffffull);
    uint64_t want = ((head >> 48) + 1) << 48 | (uint64_t)__atomic_load_n(&block->free_next, __ATOMIC_RELAXED);
    if (__atomic_compare_exchange_n(&free_threads, &head, want, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      memset(block, 0, offsetof(struct mt_thread, free_next));
      return block;
    }
  }
  struct mt_thread *fresh = mt_sys_pages(sizeof *fresh);
  if (!fresh) return NULL;
  fresh->all_next = __atomic_load_n(&all_threads, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&all_threads, &fresh->all_next, fresh, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) continue;
  return fresh;
}

/* In the same capture as when it had taken back so many marks: a later one has seen what was to be seen. Native stacks are waited for as well: microseconds. */
static bool is_capturing(const struct mt_thread *thread, uint64_t epoch, uint32_t before) {
  return __atomic_load_n(&thread->capturing, __ATOMIC_ACQUIRE) && __atomic_load_n(&thread->captured, __ATOMIC_RELAXED) == before &&
         __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) == epoch;
}

/* A forked child keeps the blocks of threads that it does not have: they are of another epoch, or it does not record. */
void mt_threads_settle(unsigned limit_ms) {
  uint64_t epoch = __atomic_load_n(&life, __ATOMIC_ACQUIRE) >> 32 == (uint32_t)mt_sys_getpid() ? __atomic_load_n(&last_epoch, __ATOMIC_RELAXED) : 0;
  uint64_t give_up = mt_clock_monotonic() + limit_ms * 1000000ull;
  if (!epoch) return;
  for (struct mt_thread *thread = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE); thread; thread = thread->all_next) {
    if (thread == mt_self) continue;
    uint32_t before = __atomic_load_n(&thread->captured, __ATOMIC_ACQUIRE);
    while (is_capturing(thread, epoch, before) && mt_clock_monotonic() < give_up) mt_sys_sleep(50000); /* it may be this very processor that it waits for */
  }
}

/* The word that every event checks: on a page that the kernel wipes in children. */
static bool make_live_page(void) {
  if (mt_live != &not_started) return true;
  void *page = mt_sys_pages(MT_PAGE);
  if (!page) return false;
  if (mt_sys_madvise(page, MT_PAGE, MADV_WIPEONFORK)) {
    mt_sys_pages_back(page, MT_PAGE);
    return false;
  }
  __atomic_store_n(&mt_live, page, __ATOMIC_RELEASE);
  return true;
}

static void announce_to_runner(void) {
  if (!mt_config.run_dir[0]) return;
  char path[2 * MT_PATH_MAX];
  char *name = stpcpy(stpcpy(path, mt_config.run_dir), "/");
  for (unsigned i = 0; i < 1000; i++) {
    if (mt_output_expand(name, MT_PATH_MAX, "%p.%n", i)) return;
    int fd = mt_sys_open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return;
    struct iovec parts[2] = {{mt_region.output.trace, strlen(mt_region.output.trace)}, {(void *)"\n", 1}};
    mt_sys_writev(fd, parts, 2);
    mt_sys_close(fd);
    return;
  }
}

static void note_file(const char *key, const char *path) {
  char text[8192];
  ssize_t n = mt_sys_read_file(path, text, sizeof text);
  if (n > 0) mt_dict_info(key, text, (size_t)n);
}

static void note_environment(void) {
  static const char *const names[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "SLURM_JOB_ID"};
  char key[64] = "env.";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = mt_config_variable(names[i]);
    if (!value) continue;
    strcpy(key + 4, names[i]);
    mt_dict_info(key, value, strlen(value));
  }
}

/* What identifies the run, written at once, so that even a process killed a millisecond later has a name. */
static void note_process(void) {
  char exe[MT_PATH_MAX];
  note_file("process.argv", "/proc/thread-self/cmdline");
  ssize_t n = mt_sys_readlink("/proc/thread-self/exe", exe, sizeof exe);
  if (n > 0) mt_dict_info("process.exe", exe, (size_t)n);
  if (mt_sys_getcwd(exe, sizeof exe)) mt_dict_info("process.cwd", exe, strlen(exe));
  if (mt_sys_hostname(exe, 256)) mt_dict_info("process.host", exe, strlen(exe));
  note_environment();
  mt_nvtx_note();
}

static bool start_here(void) {
  const char *what = "";
  if (mt_live == &not_started) mt_sys_find_lock();
  else mt_sys_forget_lock();
  if (!make_live_page()) return mt_fail("cannot tell forked children apart (MADV_WIPEONFORK, Linux 4.14, is needed)", errno), false;
  mt_region_forget();
  if (mt_region_create(&what)) return mt_fail(what, errno), false;
  if (mt_dict_start()) return mt_fail("no memory for the stack table", errno), false;
  mt_module_start();
  if (mt_capture_start()) return mt_fail("no memory for the stack table", errno), false;
  mt_context_start();
  mt_reserve_start();
  note_process();
  announce_to_runner();
  for (const char *complaint; (complaint = mt_complaint_take());) mt_log(MT_LOG_WARN, complaint, "", "");
  mt_log(MT_LOG_INFO, "recording to ", mt_region.output.trace, "");
  return true;
}

/* One thread starts, the others wait: a few hundred microseconds, in which the starter takes no lock of the program's. */
static bool start(void) {
  const uint64_t starting = life_in(STARTING), ready = life_in(READY);
  for (;;) {
    uint64_t seen = __atomic_load_n(&life, __ATOMIC_ACQUIRE);
    if ((uint32_t)seen >= OFF) return false;
    if (seen == ready && __atomic_load_n(&mt_live->epoch, __ATOMIC_ACQUIRE)) return true;
    if (seen == starting) {
      mt_sys_yield();
      continue;
    }
    /* IDLE, or a forked child that inherited its parent's phase; it may even have the same pid, in a namespace of its own: begin */
    if (!__atomic_compare_exchange_n(&life, &seen, starting, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    if (!start_here()) return false;
    __atomic_store_n(&mt_live->epoch, ++last_epoch, __ATOMIC_RELEASE);
    mt_unseen_tell();
    set_phase(READY);
    mt_boot_start();
    return true;
  }
}

void mt_guest_confess(const char *key, const char *value) {
  uint64_t idle = IDLE;
  if (mt_config.disabled || !__atomic_compare_exchange_n(&life, &idle, life_in(STARTING), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  int error = errno;
  if (start_here()) {
    mt_dict_info(key, value, strlen(value));
    __atomic_store_n(&mt_header()->control, MT_STOP_REQUESTED, __ATOMIC_RELEASE); /* nobody drains: it says that the process ended by itself */
    set_phase(OFF);
  }
  errno = error;
}

/* Once per thread and spool: a thread that finds no ring comes back with every event. */
static uint32_t note_thread(struct mt_thread *self, int32_t tid) {
  if (self->named_in == mt_live->epoch) return self->name;
  char name[17] = {0};
  mt_sys(SYS_prctl, PR_GET_NAME, name);
  self->name = mt_dict_append(MT_DICT_THREAD, (struct mt_bytes[]){{&tid, sizeof tid}, {name, strlen(name)}}, 2);
  self->named_in = mt_live->epoch;
  return self->name;
}

static void make_thread_end(void) { thread_end_made = !pthread_key_create(&thread_end, on_thread_end); }

struct mt_thread *mt_thread_idle(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (mt_self) return mt_self;
  if (mt_config.disabled || mt_guest_off()) return NULL;
  pthread_once(&once, make_thread_end);
  struct mt_thread *self = new_block();
  if (!self) return NULL;
  self->epoch = MT_EPOCH_NONE;
  if (thread_end_made) pthread_setspecific(thread_end, self);
  return mt_self = self;
}

/* An event that found no ring is lost, and the thread is one more that lost some. */
static void count_ringless(struct mt_thread *self) {
  __atomic_add_fetch(&mt_header()->lost_no_ring, 1, __ATOMIC_RELAXED);
  if (self->ringless_in == mt_live->epoch) return;
  self->ringless_in = mt_live->epoch;
  __atomic_add_fetch(&mt_header()->lost_threads, 1, __ATOMIC_RELAXED);
}

static void load_once(void);

static struct mt_thread *attach(void) {
  if (!start()) return NULL;
  struct mt_thread *self = mt_thread_idle();
  uint64_t epoch = __atomic_load_n(&mt_live->epoch, __ATOMIC_ACQUIRE);
  if (!self || !epoch) return NULL; /* the process ends just now */
  memset(self, 0, offsetof(struct mt_thread, named_in));
  self->epoch = MT_EPOCH_NONE;
  int32_t tid = mt_sys_gettid();
  if (!mt_ring_take(self, note_thread(self, tid), tid)) {
    count_ringless(self);
    return NULL;
  }
  self->epoch = epoch;
  mt_tag_rename(self);
  return self;
}

struct mt_thread *mt_thread_attach(void) {
  load_once(); /* a constructor of a library that was initialised before this one may make CUDA calls */
  if (mt_config.disabled || mt_guest_off()) return NULL;
  int error = errno;
  uint64_t before = mt_sys_block(MT_SYS_ALL_SIGNALS); /* an event in a signal handler would wait for the very thread it interrupts */
  struct mt_thread *self = attach();
  if (self) mt_tag_tell_early();
  mt_sys_set_blocked(before);
  errno = error;
  return self;
}

struct mt_thread *mt_thread_recording_now(void) {
  if (!__atomic_load_n(&mt_live->epoch, __ATOMIC_RELAXED)) return NULL;
  return mt_thread_get();
}

bool mt_guest_is_child(void) {
  uint64_t now = __atomic_load_n(&life, __ATOMIC_ACQUIRE);
  return (uint32_t)now != IDLE && now >> 32 != (uint32_t)mt_sys_getpid();
}

bool mt_guest_off(void) { return (uint32_t)__atomic_load_n(&life, __ATOMIC_ACQUIRE) >= OFF; }

bool mt_guest_records_here(void) {
  uint64_t now = __atomic_load_n(&life, __ATOMIC_ACQUIRE);
  return now == life_in(READY) || now == life_in(ENDED);
}

static void ask_for_last_flush(struct mt_spool_header *h) {
  mt_clock_refresh(h);
  __atomic_store_n(&h->control, MT_STOP_REQUESTED, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&h->drain_wake, 1, __ATOMIC_SEQ_CST);
  mt_sys_wake(&h->drain_wake, 1);
}

/* Also for one that another thread is just about to ask for. */
static void wait_for_last_flush(struct mt_spool_header *h) {
  uint64_t give_up = mt_clock_monotonic() + MT_STOP_WAIT_MS * 1000000ull;
  for (uint32_t now; (now = __atomic_load_n(&h->control, __ATOMIC_ACQUIRE)) != MT_DRAINED && mt_boot_draining() && mt_clock_monotonic() < give_up;)
    if (now == MT_STOP_REQUESTED) mt_sys_wait(&h->control, now, 50000000);
    else mt_sys_yield();
}

/* Recording ends first, or busy threads would keep the drainer at work. A thread that finds another one at it waits along: its own end would end the process.
 * Without the library the process would be gone by now, so no signal handler runs meanwhile on this thread. */
void mt_guest_end(int status) {
  if (!mt_region.base) return;
  int error = errno;
  uint64_t before = mt_sys_block(MT_SYS_ALL_SIGNALS), ready = life_in(READY);
  bool first = __atomic_compare_exchange_n(&life, &ready, life_in(ENDED), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  if (first) {
    __atomic_store_n(&mt_live->epoch, 0, __ATOMIC_RELEASE);
    if (status != MT_STATUS_UNKNOWN) __atomic_store_n(&mt_header()->exit_status, MT_EXITED | ((uint32_t)status & 0xff), __ATOMIC_RELEASE);
    ask_for_last_flush(mt_header());
  }
  if (first || ready == life_in(ENDED)) wait_for_last_flush(mt_header());
  mt_sys_set_blocked(before);
  errno = error;
}

static void load(void) {
  if (!mt_config.loaded) mt_config_load(environ);
  if (mt_foreign_libc()) mt_config.disabled = true;
  mt_nvtx_load();
  mt_leave_prepare();
  mt_boot_prepare();
  mt_limit_prepare();
  if (mt_sys_fstat(STDERR_FILENO, &stderr_at_load)) stderr_at_load.st_ino = 0;
}

static void load_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
}

/* The whole price of a process that never touches CUDA. */
__attribute__((constructor)) static void on_load(void) { load_once(); }
