#define _GNU_SOURCE
#include "process/control.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/atload.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "base/sys.h"
#include "base/thread.h"
#include "device/sampler.h"
#include "include/memtrace.h"
#include "process/boot.h"
#include "process/recorder.h"
#include "process/search.h"
#include "process/start.h"
#include "spool/dict.h"
#include "spool/region.h"

/* Sanitizers keep their own dlsym, and with it start.c out. */
#pragma weak memtrace_start
#pragma weak mt_start_mode
#pragma weak mt_start_held
#pragma weak mt_start_paused_ns

#define MT_STACK (256u << 10)
#define MT_PACKET (16u << 10)
#define MT_SETTINGS 32u
#define MT_ALONE_CHECK_MS 500    /* at whether the program is gone */
#define MT_CLIENT_MS 2000 /* that a client may take for each packet of a response */
#define MT_CLIENTS 16u
#define MT_ROWS 256u
#define MT_LOCK_WAIT_MS_MAX 30000u

static struct sockaddr_un place = {.sun_family = AF_UNIX};
static int32_t owner MT_AT_LOAD; /* pid: a forked child has neither the threads nor the socket */
static int32_t ending MT_AT_LOAD;  /* pid, once that process ends: its socket gets no name any more */

/* Writes the folder's name to path, and returns its end; NULL unless the folder is the user's own. In one that another
 * user may write to, the socket could be replaced. */
static char *make_folder(char *path) {
  uint32_t user = (uint32_t)mt_sys(SYS_geteuid);
  char *end = *mt_config.control_dir ? stpcpy(path, mt_config.control_dir)
                                     : mt_put_number(stpcpy(path, "/tmp/memtrace-"), user);
  struct stat s;
  mt_sys_mkdir(path, 0700);
  bool own = !mt_sys_lstat(path, &s) && S_ISDIR(s.st_mode) && s.st_uid == user && !(s.st_mode & 022);
  return own ? end : NULL;
}

void mt_control_check(void) {
  static bool warned; /* perhaps by a parent */
  char folder[sizeof place.sun_path];
  if (mt_config.no_control || !*mt_config.control_dir || warned || make_folder(folder)) return;
  warned = true;
  mt_log(MT_LOG_WARN, "nobody can ask this process: MEMTRACE_CONTROL_DIR=", mt_config.control_dir,
         " cannot be made, is another user's or may be written to by others");
}

static bool is_ending(void) { return __atomic_load_n(&ending, __ATOMIC_SEQ_CST) == mt_sys_getpid(); }

/* A short program may be over before this thread comes to it. The mode is that of the name from its first moment on. */
static bool bind_name(int fd) {
  if (is_ending()) return false;
  mt_sys_unlink(place.sun_path); /* an earlier process of this number was killed */
  if (mt_sys(SYS_fchmod, fd, 0600) || mt_sys(SYS_bind, fd, &place, sizeof place)) return false;
  if (is_ending()) mt_sys_unlink(place.sun_path);
  return !mt_sys(SYS_listen, fd, 8);
}

/* The listening socket, or -1. */
static int listen_here(void) {
  char *at = make_folder(place.sun_path);
  if (!at) return -1;
  stpcpy(mt_put_number(stpcpy(at, "/"), (uint64_t)mt_sys_getpid()), ".sock");
  int fd = (int)mt_sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (bind_name(fd)) return fd;
  mt_sys_close(fd);
  return -1;
}

void mt_control_end(void) {
  __atomic_store_n(&ending, mt_sys_getpid(), __ATOMIC_SEQ_CST);
  if (owner == mt_sys_getpid() && place.sun_path[0]) mt_sys_unlink(place.sun_path);
}

/* Tasks for the thread on the program's descriptors, which threads that it creates inherit. */
enum { TASK_NONE, TASK_START, TASK_WARN, TASK_END };
static uint32_t task;
static bool can_start;

static void *run_tasks(void *unused) {
  (void)unused;
  mt_sys(SYS_prctl, PR_SET_NAME, MT_THREAD_NAME);
  for (;;) {
    uint32_t now = __atomic_load_n(&task, __ATOMIC_ACQUIRE);
    if (now == TASK_NONE) mt_sys_futex_wait(&task, TASK_NONE, 0);
    if (now == TASK_END) mt_boot_end_alone();
    if (now == TASK_NONE) continue;
    if (now == TASK_START) memtrace_start();
    else
      mt_log(MT_LOG_WARN, "nobody can ask for a recording, for there is no control socket: ", place.sun_path,
             " cannot be made");
    __atomic_store_n(&task, TASK_NONE, __ATOMIC_RELEASE);
    mt_sys_futex_wake(&task, INT32_MAX);
  }
  return NULL;
}

static void run_task(uint32_t wanted) {
  __atomic_store_n(&task, wanted, __ATOMIC_RELEASE);
  mt_sys_futex_wake(&task, INT32_MAX);
  while (__atomic_load_n(&task, __ATOMIC_ACQUIRE) == wanted) mt_sys_futex_wait(&task, wanted, 0);
}

static const char *start(char *settings) {
  char *list[MT_SETTINGS + 1] = {NULL};
  if (!mt_recorder_asleep()) return NULL;
  for (unsigned count = 0; *settings && count < MT_SETTINGS; count++) {
    list[count] = settings;
    settings += strcspn(settings, "\n");
    if (*settings) *settings++ = 0;
  }
  mt_config_load(list);
  int level = mt_config.log_level;
  if (level <= MT_LOG_WARN) mt_config.log_level = MT_LOG_OFF; /* the client gets the error, not the program's user */
  run_task(TASK_START);
  mt_config.log_level = level;
  return mt_recorder_failure();
}

static const char *stop(char *unused) {
  static const char by[] = "memtrace ctl";
  (void)unused;
  if (mt_recorder_sleep()) return NULL; /* it has made no call so far */
  if (!mt_recorder_has_spool() || mt_recorder_is_off()) return "it is not recording";
  mt_sampler_end();
  mt_dict_info("stop", by, sizeof by - 1);
  mt_recorder_end(MT_STATUS_UNKNOWN);
  return NULL;
}

static const char *mark(char *name) {
  name[strcspn(name, "\n")] = 0;
  if (!mt_thread_recording_now()) return "it is not recording";
  if (!*name || strlen(name) > MEMTRACE_NAME_MAX) return "a mark's name has 1 to 255 bytes";
  memtrace_mark(name);
  return NULL;
}

/* What follows the answer, in packets of its own. */
static struct mt_referrers result;

/* "ROWS MILLISECONDS" */
static const char *referrers(char *bounds) {
  char *rest;
  uint64_t rows = strtoul(bounds, &rest, 10), milliseconds = strtoul(rest, NULL, 10);
  if (!rows || rows > MT_ROWS || !milliseconds || milliseconds > MT_LOCK_WAIT_MS_MAX)
    return "a search has 1 to 256 rows and waits 1 to 30000 milliseconds";
  if (mt_recorder_asleep()) return "nothing is known of the program before it is recorded";
  result = (struct mt_referrers){.limit = (uint32_t)rows};
  return mt_search(&result, (uint32_t)milliseconds);
}

static const char *status(char *unused) {
  (void)unused;
  return NULL;
}

static const char *state(void) {
  if (mt_recorder_asleep()) return "asleep";
  uint64_t now = __atomic_load_n(&mt_recorder_state, __ATOMIC_ACQUIRE);
  return (uint32_t)now == MT_ENDED     ? "ended"
         : (uint32_t)now == MT_OFF     ? "off"
         : now == mt_recorder_state_in(MT_READY) ? "recording"
                                       : "idle";
}

static size_t write_response(char *text, const char *error) {
  char *at = stpcpy(stpcpy(text, "state="), state());
  if (mt_recorder_has_spool()) at = stpcpy(stpcpy(at, "\ntrace="), mt_region.output.trace);
  if (mt_start_mode && mt_start_mode()) {
    at = stpcpy(stpcpy(at, "\nstart="), mt_start_mode());
    at = mt_put_number(stpcpy(at, "\nheld="), mt_start_held());
    at = mt_put_number(stpcpy(at, "\nstood_ns="), mt_start_paused_ns());
  }
  if (result.size) {
    at = mt_put_number(stpcpy(at, "\nreferrers="), result.size);
    at = mt_put_number(stpcpy(at, "\nseq="), result.seq);
  }
  if (error) at = stpcpy(stpcpy(at, "\nerror="), error);
  return (size_t)(at - text);
}

static const char *dispatch(char *request) {
  static const struct {
    const char *verb;
    const char *(*run)(char *rest);
  } verbs[] = {{"start", start}, {"stop", stop}, {"mark", mark}, {"status", status}, {"referrers", referrers}};
  size_t length = strcspn(request, " \n");
  char *rest = request + length + (request[length] != 0);
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (strlen(verbs[i].verb) == length && !memcmp(request, verbs[i].verb, length)) return verbs[i].run(rest);
  return "this version of the library does not know that request";
}

static bool is_authorized(int client) {
  struct ucred who;
  socklen_t size = sizeof who;
  return !mt_sys(SYS_getsockopt, client, SOL_SOCKET, SO_PEERCRED, &who, &size) &&
         (!who.uid || who.uid == (uint32_t)mt_sys(SYS_geteuid));
}

static bool wait_writable(int client) {
  struct pollfd one = {.fd = client, .events = POLLOUT};
  struct timespec limit = {MT_CLIENT_MS / 1000, MT_CLIENT_MS % 1000 * 1000000l};
  return mt_sys(SYS_ppoll, &one, 1, &limit, NULL, 8) > 0;
}

/* One that does not read on is left. */
static void send_referrers(int client) {
  for (size_t at = 0; at < result.size;) {
    size_t size = result.size - at < MT_PACKET ? result.size - at : MT_PACKET;
    if (!wait_writable(client) ||
        mt_sys(SYS_sendto, client, result.text + at, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (long)size)
      return;
    at += size;
  }
}

static void serve_one(int client) {
  static char packet[MT_PACKET + 1];
  ssize_t n = mt_sys_read(client, packet, MT_PACKET);
  if (n <= 0) return;
  packet[n] = 0;
  result.size = 0;
  const char *error = dispatch(packet);
  mt_sys(SYS_sendto, client, packet, write_response(packet, error), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (!result.size) return;
  send_referrers(client);
  mt_search_over();
}

/* Connected clients without a request so far, the oldest first, which makes room for one too many. One that sends none
 * delays no other. */
static int clients[MT_CLIENTS];
static unsigned connected;

static void close_client(unsigned i) {
  mt_sys_close(clients[i]);
  connected--;
  memmove(&clients[i], &clients[i + 1], (connected - i) * sizeof *clients);
}

static void accept_client(int listening) {
  int fd = (int)mt_sys(SYS_accept4, listening, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  if (!is_authorized(fd)) return mt_sys_close(fd);
  if (connected == MT_CLIENTS) close_client(0);
  clients[connected++] = fd;
}

/* Waits for at most that long, -1: without limit, and serves clients that have sent a request. */
static void serve_clients(int listening, int milliseconds) {
  struct pollfd all[MT_CLIENTS + 1];
  unsigned count = connected;
  struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000l};
  for (unsigned i = 0; i < count; i++) all[i] = (struct pollfd){.fd = clients[i], .events = POLLIN};
  all[count] = (struct pollfd){.fd = listening, .events = POLLIN};
  if (mt_sys(SYS_ppoll, all, count + 1, milliseconds < 0 ? NULL : &limit, NULL, 8) < 0) return;
  for (unsigned i = count; i--;) {
    if (!all[i].revents) continue;
    serve_one(clients[i]);
    close_client(i);
  }
  if (all[count].revents) accept_client(listening);
}

static void *serve(void *unused) {
  (void)unused;
  mt_sys(SYS_prctl, PR_SET_NAME, MT_THREAD_NAME);
  connected = 0; /* a parent's */
  if (can_start && !mt_boot_unshare_descriptors()) return NULL;
  int fd = listen_here();
  if (fd < 0) {
    if (can_start && !is_ending()) run_task(TASK_WARN);
    return NULL;
  }
  for (;;) {
    serve_clients(fd, can_start ? MT_ALONE_CHECK_MS : -1);
    if (can_start && mt_boot_is_alone()) run_task(TASK_END);
  }
  return NULL;
}

static bool begin(void) {
  int32_t before = __atomic_load_n(&owner, __ATOMIC_ACQUIRE), own = mt_sys_getpid();
  return !mt_config.no_control && before != own && !mt_sandbox_may_kill() &&
         __atomic_compare_exchange_n(&owner, &before, own, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool mt_control_open(void) {
  if (!begin()) return false;
  uint64_t before = mt_sys_block(MT_SYS_ALL_SIGNALS); /* no signal handler of the program may run on the library's
                                                         threads */
  __atomic_store_n(&task, TASK_NONE, __ATOMIC_RELAXED); /* a parent's */
  can_start = mt_boot_thread(run_tasks, MT_STACK);
  bool open = can_start && mt_boot_thread(serve, MT_STACK);
  mt_sys_set_blocked(before);
  return open;
}

void mt_control_serve(void) {
  if (begin()) mt_boot_thread(serve, MT_STACK);
}

/* For a loader into a running process (memtrace attach): nothing is recorded before a request. Returns 1 if the control
 * socket is open. */
MT_EXPORT int memtrace_attach(void);
MT_EXPORT int memtrace_attach(void) {
  if (mt_config.disabled) return 0;
  if (__atomic_load_n(&owner, __ATOMIC_ACQUIRE) == mt_sys_getpid()) return 1;
  if (!mt_recorder_sleep()) return 0;
  mt_config.disabled = !mt_control_open(); /* then it has seen nothing to report at the program's end */
  return !mt_config.disabled;
}
