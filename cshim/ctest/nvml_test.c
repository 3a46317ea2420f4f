/* What the management library answers and what is made of it, with a library of our own making; and readings, which
 * must find the moments at which memory stands still. */
#define _GNU_SOURCE
#include "device/nvml.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forklock.h"
#include "check.h"
#include "device/sample.h"
#include "device/sampler.h"
#include "spool/region.h"
#include "spool/ring.h"

#define OWN 4711u
#define NO_FIGURE (~0ull)

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };

struct memory_v1 {
  unsigned long long total, free, used;
};
struct memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct process_v1 {
  unsigned pid;
  unsigned long long used;
};
struct process_v2 {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

/* What the library of this test says. */
static struct {
  int init_status, memory_status;
  struct memory_v2 memory;
  struct process_v1 compute[4], graphics[4];
  unsigned compute_count, graphics_count;
  int version; /* newest of the functions that exist */
  const char *missing;
  const char *known_uuid;
  void (*during)(void); /* called inside every question for memory */
} fake;

static int init(void) { return fake.init_status; }
static int give_back(void) { return OK; }

static int memory_v2(mt_nvml_device device, struct memory_v2 *out) {
  (void)device;
  if (out->version != (40u | 2u << 24)) return 25;
  unsigned version = out->version;
  *out = fake.memory;
  out->version = version;
  if (fake.during) fake.during();
  return fake.memory_status;
}

static int memory_v1(mt_nvml_device device, struct memory_v1 *out) {
  (void)device;
  *out = (struct memory_v1){fake.memory.total, fake.memory.free, fake.memory.total - fake.memory.free};
  return fake.memory_status;
}

static int by_uuid(const char *uuid, mt_nvml_device *device) {
  if (strcmp(uuid, fake.known_uuid)) return NOT_FOUND;
  *device = (mt_nvml_device)&fake;
  return OK;
}

static int fill_v2(const struct process_v1 *from, unsigned have, unsigned *count, struct process_v2 *list) {
  unsigned room = *count;
  *count = have;
  if (have > room) return TOO_SMALL;
  for (unsigned i = 0; i < have && i < 4; i++) list[i] = (struct process_v2){from[i].pid, from[i].used, ~0u, ~0u};
  return OK;
}

static int fill_v1(const struct process_v1 *from, unsigned have, unsigned *count, struct process_v1 *list) {
  unsigned room = *count;
  *count = have;
  if (have > room) return TOO_SMALL;
  memcpy(list, from, have * sizeof *list);
  return OK;
}

#define LISTS(name, from, count_of) \
  static int name##_v2(mt_nvml_device d, unsigned *n, void *list) { \
    return (void)d, fill_v2(from, count_of, n, list); \
  } \
  static int name##_v1(mt_nvml_device d, unsigned *n, void *list) { return (void)d, fill_v1(from, count_of, n, list); }
LISTS(compute, fake.compute, fake.compute_count)
LISTS(graphics, fake.graphics, fake.graphics_count)

static void *find(void *from, const char *name) {
  static const struct {
    const char *name;
    void *function;
    int version;
  } table[] = {
      {"nvmlInit_v2", (void *)init, 1},
      {"nvmlShutdown", (void *)give_back, 1},
      {"nvmlDeviceGetHandleByUUID", (void *)by_uuid, 1},
      {"nvmlDeviceGetMemoryInfo", (void *)memory_v1, 1},
      {"nvmlDeviceGetMemoryInfo_v2", (void *)memory_v2, 2},
      {"nvmlDeviceGetComputeRunningProcesses", (void *)compute_v1, 1},
      {"nvmlDeviceGetComputeRunningProcesses_v2", (void *)compute_v2, 2},
      {"nvmlDeviceGetComputeRunningProcesses_v3", (void *)compute_v2, 3},
      {"nvmlDeviceGetGraphicsRunningProcesses", (void *)graphics_v1, 1},
      {"nvmlDeviceGetGraphicsRunningProcesses_v2", (void *)graphics_v2, 2},
      {"nvmlDeviceGetGraphicsRunningProcesses_v3", (void *)graphics_v2, 3},
  };
  CHECK(from == &fake);
  if (fake.missing && !strcmp(name, fake.missing)) return NULL;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name) && table[i].version <= fake.version) return table[i].function;
  return NULL;
}

static const char *bind(int version) {
  fake.version = version;
  fake.memory = (struct memory_v2){.total = 80000, .reserved = 600, .free = 70000, .used = 9400};
  return mt_nvml_bind(find, &fake);
}

static void binding(void) {
  CHECK(!bind(3) && !bind(2) && !bind(1));
  static const char *const needed[] = {"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetHandleByUUID"};
  for (int i = 0; i < 3; i++) {
    fake.missing = needed[i];
    CHECK(bind(3) && strstr(bind(3), "too old"));
  }
  fake.missing = NULL;
  static const struct {
    int status;
    const char *says;
  } refusals[] = {{9, "driver not loaded"}, {4, "permission"}, {17, "blocks"}, {18, "differ"}, {999, "initialised"}};
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    fake.init_status = refusals[i].status;
    const char *why = bind(3);
    CHECK(why && strstr(why, refusals[i].says));
  }
}

static void devices(void) {
  const uint8_t uuid[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                            0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
  bool slice;
  CHECK(!bind(3));
  fake.known_uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff";
  CHECK(mt_nvml_find(uuid, &slice) && !slice);
  fake.known_uuid = "MIG-00112233-4455-6677-8899-aabbccddeeff";
  CHECK(mt_nvml_find(uuid, &slice) && slice);
  fake.known_uuid = "none";
  CHECK(!mt_nvml_find(uuid, &slice));
}

static void memory(void) {
  struct mt_nvml_memory m;
  CHECK(!bind(3) && mt_nvml_memory(NULL, &m));
  CHECK_EQ(m.total, 80000);
  CHECK_EQ(m.used, 10000); /* whatever is not free */
  CHECK_EQ(m.reserved, 600);
  CHECK(!bind(1) && mt_nvml_memory(NULL, &m));
  CHECK_EQ(m.used, 10000);
  CHECK_EQ(m.reserved, 0);
  CHECK(!bind(3));
  fake.memory.free = 80001; /* nonsense */
  CHECK(!mt_nvml_memory(NULL, &m));
  fake.memory_status = NOT_SUPPORTED;
  CHECK(!bind(3) && !mt_nvml_memory(NULL, &m));
}

static struct mt_nvml_share share(int version, unsigned compute_count, unsigned graphics_count) {
  struct mt_nvml_share s;
  CHECK(!bind(version));
  fake.compute_count = compute_count;
  fake.graphics_count = graphics_count;
  mt_nvml_share(NULL, OWN, &s);
  return s;
}

static void shares(void) {
  const struct process_v1 compute[] = {{1, 100}, {OWN, 2000}, {7, 30000}}, graphics[] = {{7, 30000}, {8, 400000}};
  memcpy(fake.compute, compute, sizeof compute);
  memcpy(fake.graphics, graphics, sizeof graphics);
  for (int version = 1; version <= 3; version++) {
    struct mt_nvml_share s = share(version, 3, 2);
    CHECK(s.own_known && s.others_known && !s.why_not);
    CHECK_EQ(s.own, 2000);
    CHECK_EQ(s.others, 430100); /* 7 stands in both lists */
  }
  struct mt_nvml_share s = share(3, 1, 0);
  CHECK(!s.own_known && s.why_not && strstr(s.why_not, "container"));
  s = share(3, 0, 0);
  CHECK(!s.own_known && s.why_not);
  fake.compute[1].used = NO_FIGURE;
  s = share(3, 3, 0);
  CHECK(!s.own_known && strstr(s.why_not, "WSL"));
  fake.compute[1].used = 2000;
  fake.compute[2].used = NO_FIGURE;
  s = share(3, 3, 0);
  CHECK(s.own_known && !s.others_known && s.why_not);
  CHECK_EQ(s.own, 2000);
  s = share(3, 1025, 0); /* more than there is room for: nothing is known, nothing is written */
  CHECK(!s.own_known && !s.others_known);
  fake.missing = "nvmlDeviceGetComputeRunningProcesses";
  s = share(1, 3, 0);
  CHECK(!s.own_known && s.why_not);
}

/* Readings. */

static struct mt_thread *self;
static int questions, noisy_until;

static struct mt_thread *start(void) {
  CHECK(!bind(3));
  fake.compute[0] = (struct process_v1){(unsigned)getpid(), 3000};
  fake.compute[1] = (struct process_v1){1, 4000};
  fake.compute_count = 2;
  check_output("n.bin");
  self = mt_thread_get();
  CHECK(self != NULL);
  return self;
}

static const struct mt_record *last(void) { return self->next - 1; }

static struct mt_sample want(bool share, bool patient) {
  return (struct mt_sample){
      .device = (mt_nvml_device)&fake, .ordinal = 2, .occasion = "period", .share = share, .will_retry = patient};
}

static enum mt_sample_result take(bool share, bool patient, uint64_t *used) {
  const struct mt_sample w = want(share, patient);
  questions = 0;
  return mt_sample_take(&w, used);
}

static void settled(void) {
  uint64_t used = 0, before;
  start();
  before = mt_header()->seq;
  CHECK_EQ(take(true, false, &used), MT_READING_SETTLED);
  CHECK_EQ(used, 10000);
  const struct mt_record *r = last();
  CHECK_EQ(r->seq, before + 1);
  CHECK_EQ(mt_header()->seq, before + 1);
  CHECK_EQ(r->kind, MT_SAMPLE);
  CHECK_EQ(r->device, 2);
  CHECK_EQ(r->size, 10000);
  CHECK_EQ(r->reserved, 600);
  CHECK_EQ(r->allocated, 3000);
  CHECK_EQ(r->addr, 4000);
  CHECK_EQ(r->pystack, 0);
  CHECK(r->stack != 0);
  CHECK_EQ(self->ring->inflight, 0);
  CHECK_EQ(take(false, false, &used), MT_READING_SETTLED); /* processes were not asked for */
  CHECK_EQ(last()->pystack, MT_FLAG_SHARE_UNKNOWN);
  CHECK_EQ(last()->allocated, 0);
  CHECK_EQ(last()->seq, before + 2);
}

/* An event of another thread, in the middle of the first so many questions. */
static void draw_meanwhile(void) {
  if (++questions <= noisy_until) mt_seq_draw();
}

static void disturbed(void) {
  uint64_t used, before;
  start();
  fake.during = draw_meanwhile;
  noisy_until = 2; /* both questions of the first attempt */
  before = mt_header()->seq;
  CHECK_EQ(take(true, false, &used), MT_READING_SETTLED); /* the second attempt is quiet */
  CHECK_EQ(last()->seq, before + 3);
  noisy_until = 1000;
  before = mt_header()->seq;
  struct mt_record *next = self->next;
  CHECK_EQ(take(true, true, &used), MT_READING_UNSETTLED); /* patient: no record, no number of its own */
  CHECK(self->next == next && !self->busy);
  CHECK_EQ(mt_header()->seq, before + (uint64_t)questions);
  CHECK_EQ(take(true, false, &used), MT_READING_UNSETTLED);
  CHECK(self->next == next + 1);
  CHECK_EQ(last()->pystack, MT_FLAG_UNSETTLED);
  CHECK_EQ(last()->seq, mt_header()->seq);
}

/* A spool that is full for a while costs the readings meanwhile, and no later ones. */
static void crowded(void) {
  uint64_t used;
  mt_config.spool_max = mt_config.spool_hard_max = 1 << 20;
  start();
  fake.during = NULL;
  while (!self->ring->lost_others) check_event(4096);
  uint64_t lost = self->ring->lost_others, before = mt_header()->seq;
  CHECK_EQ(take(true, false, &used), MT_READING_LOST);
  CHECK_EQ(used, 10000);
  CHECK_EQ(self->ring->lost_others, lost + 1);
  CHECK_EQ(mt_header()->seq, before);
  CHECK(!self->busy && !self->ring->inflight);
  self->next = (struct mt_record *)self->segment + 1; /* room again, as from a segment that the drainer gave back */
  CHECK_EQ(take(true, false, &used), MT_READING_SETTLED);
  CHECK_EQ(last()->kind, MT_SAMPLE);
}

static void move_meanwhile(void) { fake.memory.free -= 512; }

/* What no hook sees: another process, a pool that shrinks at a synchronisation. */
static void moving(void) {
  uint64_t used;
  start();
  fake.during = move_meanwhile;
  CHECK_EQ(take(true, false, &used), MT_READING_UNSETTLED);
  CHECK_EQ(last()->pystack, MT_FLAG_UNSETTLED);
}

/* A second thread is inside the driver: what it does there has no number yet. */
static void under_way(void) {
  uint64_t used;
  start();
  struct mt_thread other = {0};
  CHECK(mt_ring_acquire(&other, 0, 1));
  CHECK_EQ(take(true, false, &used), MT_READING_SETTLED);
  mt_ring_call(&other);
  CHECK_EQ(take(true, false, &used), MT_READING_UNSETTLED);
  mt_ring_call(&other);
  CHECK_EQ(take(true, false, &used), MT_READING_SETTLED);
  uint64_t outer = mt_seq_begin(&other); /* a free */
  CHECK_EQ(take(true, false, &used), MT_READING_UNSETTLED);
  mt_seq_end(&other, outer);
  CHECK_EQ(take(true, false, &used), MT_READING_SETTLED);
}

static void refused(void) {
  uint64_t used = 0;
  start();
  struct mt_record *next = self->next;
  fake.memory_status = NOT_SUPPORTED;
  CHECK_EQ(take(true, false, &used), MT_READING_REFUSED);
  CHECK(self->next == next);
}

enum { FORK_WAIT_NS = 50000000 }; /* how long a fork waits (cshim/base/forklock.c) */

static uint32_t inside, left;

/* Until a fork waits for it, which keeps everybody else out. */
static void stay_inside(void) {
  mt_forklock_acquire();
  __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
  for (; mt_forklock_try(); usleep(100)) mt_forklock_release();
  __atomic_store_n(&left, 1, __ATOMIC_SEQ_CST);
  mt_forklock_release();
}

static void fork_meanwhile(uint64_t number) {
  if (!number) return stay_inside();
  while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST)) usleep(100);
  uint64_t begin = mt_clock_monotonic();
  pid_t child = fork();
  bool gave_up = mt_clock_monotonic() - begin >= FORK_WAIT_NS; /* the thread inside may get no processor for so long */
  if (!child) _exit(__atomic_load_n(&left, __ATOMIC_SEQ_CST) || gave_up ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

/* A child in which our thread's locks are taken for ever would be ours to blame. */
static void forks_wait(void) {
  if (!CHECK_FORKS_OF_THREADS) return check_skip("forks of threads");
  CHECK(mt_forklock_init());
  check_threads(2, fork_meanwhile);
  mt_forklock_acquire(); /* the parent goes on */
  mt_forklock_release();
}

static void *hold(void *unused) {
  mt_forklock_acquire();
  __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
  return unused;
}

/* But a program's fork never waits for ever. */
static void forks_give_up(void) {
  if (!CHECK_FORKS_OF_THREADS) return check_skip("forks of threads");
  pthread_t thread;
  CHECK(mt_forklock_init());
  CHECK(!pthread_create(&thread, NULL, hold, NULL));
  while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST)) usleep(100);
  pid_t child = fork();
  if (!child) {
    mt_forklock_acquire(); /* and is no burden for the child */
    mt_forklock_release();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

/* A process without a sampler has nothing to wait for, nor has the child of one that has. */
static void no_sampler(void) {
  mt_wake_sampler(MT_OCCASION_OOM);
  mt_sampler_end();
  CHECK(true);
}

int main(void) {
  static const struct check_case cases[] = {
      {"binding", binding},       {"devices", devices},       {"memory", memory},
      {"shares", shares},         {"settled", settled},       {"disturbed", disturbed},
      {"moving", moving},         {"under way", under_way},   {"refused", refused},
      {"crowded", crowded},       {"forks wait", forks_wait}, {"forks give up", forks_give_up},
      {"no sampler", no_sampler},
  };
  return check_main("nvml", cases, sizeof cases / sizeof *cases);
}
