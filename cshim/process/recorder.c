#define _GNU_SOURCE
#include "process/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "adapters/adapter.h"
#include "adapters/backward.h"
#include "adapters/torch.h"
#include "allocator/growth.h"
#include "base/atload.h"
#include "base/clock.h"
#include "base/configwarning.h"
#include "base/config.h"
#include "base/sys.h"
#include "elf/foreign.h"
#include "hooks/call.h"
#include "hooks/context.h"
#include "hooks/reserve.h"
#include "hooks/unhooked.h"
#include "nvtx/nvtx.h"
#include "process/boot.h"
#include "process/control.h"
#include "process/exithooks.h"
#include "process/limit.h"
#include "process/search.h"
#include "process/start.h"
#include "python/pyfinalize.h"
#include "python/python.h"
#include "record/capture.h"
#include "record/tag.h"
#include "spool/dict.h"
#include "spool/module.h"
#include "spool/region.h"
#include "spool/ring.h"

/* How long the end of the program may wait for the drainer. It is busy for milliseconds; the limit only matters when
 * the machine hangs. */
#define MT_STOP_WAIT_MS 5000u

#pragma weak strerrordesc_np
#pragma weak mt_start_note /* sanitizers keep their own dlsym, and with it start.c out */

static char failure[64 + MT_PATH_MAX];

const char *mt_recorder_failure(void) { return failure[0] ? failure : NULL; }

void mt_fail(const char *what, int error) {
  const char *system = error ? strerrordesc_np(error) : NULL;
  size_t length = strlen(what);
  if (length < sizeof failure - 64)
    stpcpy(stpcpy(stpcpy(failure, what), system ? ": " : ""), system && strlen(system) < 60 ? system : "");
  mt_recorder_set_phase(MT_OFF);
  mt_log(MT_LOG_ERROR, "recording is off: ", what, "");
  if (error)
    mt_log(MT_LOG_ERROR, "the system says: ", strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error", "");
}

/* The trace, or the spool, cannot be created: names the file, and what to do. */
static void fail_file(const char *what) {
  int error = errno;
  char text[64 + MT_PATH_MAX];
  bool is_file = !strncmp(what, "creating", 8);
  if (is_file)
    stpcpy(stpcpy(stpcpy(text, what), " "),
           mt_config.spool_dir[0] && strstr(what, "spool") ? mt_region.output.spool : mt_region.output.trace);
  mt_fail(is_file ? text : what, error);
  if (is_file)
    mt_log(MT_LOG_ERROR,
           "set MEMTRACE_OUTPUT to a file in a folder that can be written to, such as /tmp/memtrace.%e.%p.bin", "", "");
}

static void write_manifest(void) {
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

static void write_file_info(const char *key, const char *path) {
  char text[8192];
  ssize_t n = mt_sys_read_file(path, text, sizeof text);
  if (n > 0) mt_dict_info(key, text, (size_t)n);
}

static void write_environment(void) {
  static const char *const names[] = {"RANK",
                                      "LOCAL_RANK",
                                      "WORLD_SIZE",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "PMIX_RANK",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "MV2_COMM_WORLD_RANK",
                                      "MV2_COMM_WORLD_SIZE",
                                      "POD_NAME",
                                      "CUDA_VISIBLE_DEVICES",
                                      "CUDA_MODULE_LOADING",
                                      "PYTORCH_CUDA_ALLOC_CONF",
                                      "PYTORCH_ALLOC_CONF",
                                      "PYTORCH_NO_CUDA_MEMORY_CACHING",
                                      "SLURM_JOB_ID"};
  char key[64] = "env.";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = mt_config_variable(names[i]);
    if (!value) continue;
    strcpy(key + 4, names[i]);
    mt_dict_info(key, value, strlen(value));
  }
}

/* What identifies the run, written at once, so that even a process killed a millisecond later has a name. */
static void write_process_info(void) {
  char exe[MT_PATH_MAX];
  write_file_info("process.argv", "/proc/thread-self/cmdline");
  ssize_t n = mt_sys_readlink("/proc/thread-self/exe", exe, sizeof exe);
  if (n > 0) mt_dict_info("process.exe", exe, (size_t)n);
  if (mt_sys_getcwd(exe, sizeof exe)) mt_dict_info("process.cwd", exe, strlen(exe));
  if (mt_sys_hostname(exe, 256)) mt_dict_info("process.host", exe, strlen(exe));
  write_file_info("process.cgroup", "/proc/thread-self/cgroup");
  write_environment();
  mt_nvtx_note();
  if (mt_start_note) mt_start_note();
}

static bool create_recording(void) {
  const char *what = "";
  if (mt_epoch_page_missing()) mt_sys_detect_mlockall();
  else mt_sys_reset_mlockall();
  if (!mt_epoch_page_create())
    return mt_fail(errno == EINVAL ? "cannot tell forked children apart (MADV_WIPEONFORK, Linux 4.14, is needed)"
                                   : "no memory to record with (is the limit on data or address space too small?)",
                   errno), false;
  mt_region_reset();
  if (mt_region_create(&what)) return fail_file(what), false;
  if (mt_dict_start()) return mt_fail("no memory for the stack table", errno), false;
  mt_module_start();
  if (mt_capture_start()) return mt_fail("no memory for the stack table", errno), false;
  mt_context_start();
  mt_reserve_start();
  write_process_info();
  write_manifest();
  for (const char *warning; (warning = mt_config_warning_take());) mt_log(MT_LOG_WARN, warning, "", "");
  mt_control_check();
  mt_log(MT_LOG_INFO, "recording to ", mt_region.output.trace, "");
  return true;
}

void mt_record_exit_note(const char *key, const char *value) {
  uint64_t idle = MT_IDLE;
  if (mt_config.disabled || !__atomic_compare_exchange_n(&mt_recorder_state, &idle, mt_recorder_state_in(MT_STARTING),
                                                         false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return;
  int error = errno;
  if (create_recording()) {
    mt_dict_info(key, value, strlen(value));
    __atomic_store_n(&mt_header()->control, MT_STOP_REQUESTED,
                     __ATOMIC_RELEASE); /* not for a drainer: readers see that the process exited normally */
    mt_recorder_set_phase(MT_OFF);
  }
  errno = error;
}

/* Once per thread and spool: a thread that finds no ring comes back with every event. */
static uint32_t write_thread(struct mt_thread *self, int32_t tid) {
  if (self->named_in == mt_epoch_page->epoch) return self->name;
  char name[17] = {0};
  mt_sys(SYS_prctl, PR_GET_NAME, name);
  self->name = mt_dict_append(MT_DICT_THREAD, (struct mt_bytes[]){{&tid, sizeof tid}, {name, strlen(name)}}, 2);
  self->named_in = mt_epoch_page->epoch;
  return self->name;
}

/* An event that found no ring is lost, and the thread is one more that lost some. */
static void count_ringless(struct mt_thread *self) {
  __atomic_add_fetch(&mt_header()->lost_no_ring, 1, __ATOMIC_RELAXED);
  if (self->ringless_in == mt_epoch_page->epoch) return;
  self->ringless_in = mt_epoch_page->epoch;
  __atomic_add_fetch(&mt_header()->lost_threads, 1, __ATOMIC_RELAXED);
}

static void load_once(void);

/* A thread's block is about to be recycled. A hook that runs in a later destructor attaches again. */
static void on_thread_end(struct mt_thread *self) {
  int32_t tid = self->epoch == mt_epoch_page->epoch ? self->ring->tid : 0;
  if (!tid) return;
  mt_ring_retire(self);
  mt_boot_thread_ends(tid);
}

static struct mt_thread *take_ring(struct mt_thread *self) {
  uint64_t epoch = __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE);
  if (!self || !epoch) return NULL; /* the process ends just now */
  memset(self, 0, offsetof(struct mt_thread, named_in));
  self->epoch = MT_EPOCH_NONE;
  int32_t tid = mt_sys_gettid();
  if (!mt_ring_acquire(self, write_thread(self, tid), tid)) {
    count_ringless(self);
    return NULL;
  }
  self->epoch = epoch;
  mt_tag_reintern(self);
  return self;
}

/* Once; later the process may be ending. */
static void let_others_record(void) {
  uint64_t starting = mt_recorder_state_in(MT_STARTING);
  __atomic_compare_exchange_n(&mt_recorder_state, &starting, mt_recorder_state_in(MT_READY), false, __ATOMIC_ACQ_REL,
                              __ATOMIC_RELAXED);
}

/* Other threads wait meanwhile, or bypass (base/thread.h). record_held records what is live already. */
static bool begin(void (*record_held)(void (*recorded)(void))) {
  if (!create_recording()) return false;
  __atomic_store_n(&mt_epoch_page->epoch, ++mt_last_epoch, __ATOMIC_RELEASE);
  mt_unhooked_report();
  if (record_held && take_ring(mt_thread_idle())) record_held(let_others_record);
  let_others_record();
  mt_boot_start();
  return true;
}

/* One thread starts, the others wait: a few hundred microseconds, in which the starter takes no lock of the program's.
 */
static bool start(void) {
  /* epoch's page is wiped in children: where it is set, the phase is this process's own */
  if ((uint32_t)__atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE) == MT_READY &&
      __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE))
    return true;
  const uint64_t starting = mt_recorder_state_in(MT_STARTING), ready = mt_recorder_state_in(MT_READY);
  for (;;) {
    uint64_t seen = __atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE);
    if ((uint32_t)seen >= MT_OFF) return false;
    if (seen == ready && __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_ACQUIRE)) return true;
    if (seen == starting) {
      if (mt_bypass_event()) return false;
      mt_sys_yield();
      continue;
    }
    /* IDLE, or a forked child that inherited its parent's phase; it may even have the same pid, in a namespace of its
     * own: begin */
    if (!__atomic_compare_exchange_n(&mt_recorder_state, &seen, starting, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      continue;
    if (mt_config.asleep && mt_control_open()) return mt_recorder_set_phase(MT_ASLEEP), false;
    return begin(NULL);
  }
}

static struct mt_thread *attach(void) { return start() ? take_ring(mt_thread_idle()) : NULL; }

/* Also in a child that was forked from a process that slept: it has no control socket, since it lacks that one's
 * threads. */
bool mt_recorder_sleep(void) {
  uint64_t seen = __atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE);
  bool idle = seen == MT_IDLE || ((uint32_t)seen == MT_ASLEEP && seen != mt_recorder_state_in(MT_ASLEEP));
  return idle && __atomic_compare_exchange_n(&mt_recorder_state, &seen, mt_recorder_state_in(MT_ASLEEP), false,
                                             __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void mt_recorder_wake(void) {
  uint64_t asleep = mt_recorder_state_in(MT_ASLEEP);
  mt_config.asleep = false;
  __atomic_compare_exchange_n(&mt_recorder_state, &asleep, MT_IDLE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool mt_recorder_start(void (*prepare)(void), void (*record_held)(void (*recorded)(void))) {
  uint64_t idle = MT_IDLE, asleep = mt_recorder_state_in(MT_ASLEEP), starting = mt_recorder_state_in(MT_STARTING);
  mt_bypass_begin();
  if (!__atomic_compare_exchange_n(&mt_recorder_state, &asleep, starting, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
      !__atomic_compare_exchange_n(&mt_recorder_state, &idle, starting, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    mt_bypass_end();
    return false;
  }
  int error = errno;
  uint64_t before = mt_sys_block(MT_SYS_ALL_SIGNALS);
  mt_config.asleep = false;
  prepare();
  bool began = begin(record_held);
  mt_bypass_end();
  mt_sys_set_blocked(before);
  errno = error;
  return began;
}

struct mt_thread *mt_thread_attach(void) {
  load_once(); /* a constructor of a library that was initialised before this one may make CUDA calls */
  if (mt_config.disabled || mt_recorder_is_off()) return NULL;
  int error = errno;
  uint64_t before =
      mt_sys_block(MT_SYS_ALL_SIGNALS); /* an event in a signal handler would wait for the very thread it interrupts */
  struct mt_thread *self = attach();
  if (self) mt_tag_flush_early();
  mt_sys_set_blocked(before);
  errno = error;
  return self;
}

static void request_last_flush(struct mt_spool_header *h) {
  mt_clock_refresh(h);
  __atomic_store_n(&h->control, MT_STOP_REQUESTED, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&h->drain_wake, 1, __ATOMIC_SEQ_CST);
  mt_sys_futex_wake(&h->drain_wake, 1);
}

/* Also for a flush that another thread is just about to request. */
static void wait_for_last_flush(struct mt_spool_header *h) {
  uint64_t give_up = mt_clock_monotonic() + (MT_STOP_WAIT_MS + mt_config.embed_symbols_ms) * 1000000ull;
  for (uint32_t now; (now = __atomic_load_n(&h->control, __ATOMIC_ACQUIRE)) != MT_DRAINED && mt_draining() &&
                     mt_clock_monotonic() < give_up;)
    if (now == MT_STOP_REQUESTED) mt_sys_futex_wait(&h->control, now, 50000000);
    else mt_sys_yield();
}

/* Recording ends first, or busy threads would keep the drainer at work. A second thread waits as well: its own exit
 * would end the process. Without the library the process would have ended by now, so signals are blocked on this thread
 * meanwhile. */
void mt_recorder_end(int status) {
  if (!mt_region.base) return;
  int error = errno;
  uint64_t before = mt_sys_block(MT_SYS_ALL_SIGNALS), ready = mt_recorder_state_in(MT_READY);
  bool first = __atomic_compare_exchange_n(&mt_recorder_state, &ready, mt_recorder_state_in(MT_ENDED), false,
                                           __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  if (first) {
    __atomic_store_n(&mt_epoch_page->epoch, 0, __ATOMIC_RELEASE);
    if (status != MT_STATUS_UNKNOWN)
      __atomic_store_n(&mt_header()->exit_status, MT_EXITED | ((uint32_t)status & 0xff), __ATOMIC_RELEASE);
    request_last_flush(mt_header());
  }
  if (first || ready == mt_recorder_state_in(MT_ENDED)) wait_for_last_flush(mt_header());
  mt_sys_set_blocked(before);
  errno = error;
}

static void interpreter_ends(void) {
  mt_adapter_report_all();
  mt_search_at_end();
}

/* Lower rooms notify upper ones by these. Before any event. */
static void register_listeners(void) {
  mt_thread_on_end(on_thread_end);
  mt_module_on_discovery(mt_python_module_loaded);
  mt_module_on_discovery(mt_adapter_module_loaded);
  mt_pyfinalize_on_end(interpreter_ends, mt_adapter_reset);
  mt_capture_on_unload(mt_backward_check_unloaded);
  mt_call_on_out_of_memory(mt_adapter_out_of_memory);
  mt_torch_on_refusal(mt_search_announce, mt_search_at_refusal);
  mt_growth_on_rise(mt_search_while_growing);
}

static void load(void) {
  if (!mt_config.loaded) mt_config_load(environ);
  if (mt_foreign_libc()) mt_config.disabled = true;
  register_listeners();
  mt_nvtx_load();
  mt_exit_hooks_init();
  mt_boot_prepare();
  mt_limit_prepare();
  mt_log_init();
}

static void load_once(void) {
  static pthread_once_t once MT_AT_LOAD = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
}

/* The whole price of a process that never touches CUDA. */
__attribute__((constructor)) static void on_load(void) { load_once(); }
