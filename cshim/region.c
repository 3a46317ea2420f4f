#define _GNU_SOURCE
#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "guest.h"
#include "identity.h"
#include "uncancelled.h"

#define MT_CHUNK (256u << 10)
#define MT_REFUSALS 1000u

struct mt_region mt_region;

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* posix_fallocate may be interrupted, and a file system without the call is emulated by the C library. */
static bool allocate_fd(int fd, uint64_t offset, uint64_t size) {
  int error;
  do error = posix_fallocate(fd, (off_t)offset, (off_t)size);
  while (error == EINTR);
  return error == 0;
}

/* Faulting pages in through the mapping reserves their blocks, too, and fails without a signal. For when the file cannot be opened: it was deleted, the
 * program changed its root or ran out of descriptors. Linux 5.14. */
static bool populate(uint64_t offset, uint64_t size) {
#ifdef MADV_POPULATE_WRITE
  return !madvise(mt_region.base + offset, size, MADV_POPULATE_WRITE);
#else
  (void)offset, (void)size;
  return false;
#endif
}

/* No descriptor is kept open: a program that closes all descriptors and opens its own files would have us grow one of those. */
static bool allocate(uint64_t offset, uint64_t size) {
  int error = errno, cancel = mt_cancel_hold();
  struct stat s;
  bool done = false;
  int fd = open(mt_region.real_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && !fstat(fd, &s) && s.st_ino == mt_region.inode && s.st_dev == mt_region.device)
    done = allocate_fd(fd, offset, size);
  else
    done = populate(offset, size);
  if (fd >= 0) close(fd);
  mt_cancel_release(cancel);
  errno = error;
  return done;
}

/* On a full disk the question takes far longer than an event should, so it is asked only now and then. */
static uint32_t refusals;

static bool refusing(void) {
  uint32_t left = __atomic_load_n(&refusals, __ATOMIC_RELAXED);
  if (!left) return false;
  __atomic_store_n(&refusals, left - 1, __ATOMIC_RELAXED);
  return true;
}

bool mt_region_ensure(uint64_t *ready, uint64_t start, uint64_t upto, uint64_t limit) {
  uint64_t have = __atomic_load_n(ready, __ATOMIC_ACQUIRE);
  if (MT_LIKELY(upto <= have)) return true;
  if (upto > limit) return false;
  if (refusing()) return false;
  uint64_t want = round_up(upto, MT_CHUNK);
  if (want > limit) want = limit;
  if (!allocate(start + have, want - have)) { /* two threads may both do it: harmless */
    want = round_up(upto, MT_PAGE);           /* the last rest of a disk */
    if (want > limit || !allocate(start + have, want - have)) {
      __atomic_store_n(&refusals, MT_REFUSALS, __ATOMIC_RELAXED);
      return false;
    }
  }
  while (have < want && !__atomic_compare_exchange_n(ready, &have, want, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return true;
}

bool mt_region_ensure_segment(uint32_t number) {
  struct mt_spool_header *h = mt_header();
  uint64_t offset = (uint64_t)(number - 1) * MT_SEGMENT_SIZE, limit = (uint64_t)h->segments_max * MT_SEGMENT_SIZE;
  if (!mt_region_ensure(&mt_region.segments_ready, h->segments_offset, offset + MT_SEGMENT_SIZE, limit)) return false;
#ifdef MADV_POPULATE_WRITE
  int error = errno;
  madvise(mt_region.base + h->segments_offset + offset, MT_SEGMENT_SIZE, MADV_POPULATE_WRITE);
  errno = error;
#endif
  return true;
}

/* How large a file and mapping the process's own limits leave: a file over RLIMIT_FSIZE would raise SIGXFSZ in the program. */
static uint64_t allowed_size(void) {
  struct rlimit files, space;
  uint64_t most = UINT64_MAX;
  if (!getrlimit(RLIMIT_FSIZE, &files) && files.rlim_cur != RLIM_INFINITY) most = files.rlim_cur;
  if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY && space.rlim_cur / 8 < most) most = space.rlim_cur / 8;
  return most;
}

static bool plan(struct mt_spool_header *h) {
  memcpy(h->magic, MT_SPOOL_MAGIC, sizeof MT_SPOOL_MAGIC);
  h->version = MT_SPOOL_VERSION;
  h->record_size = MT_RECORD_SIZE;
  h->segment_size = MT_SEGMENT_SIZE;
  h->rings_max = MT_RINGS_MAX;
  h->index_max = MT_INDEX_MAX;
  h->rings_offset = MT_PAGE;
  h->index_offset = h->rings_offset + (uint64_t)MT_RINGS_MAX * sizeof(struct mt_ring);
  h->data_offset = h->index_offset + (uint64_t)MT_INDEX_MAX * sizeof(struct mt_index_entry);
  uint64_t fixed = h->data_offset, most = allowed_size(), each = mt_config.spool_max;
  if (most < fixed + 2 * MT_CHUNK) return false;
  if ((most - fixed) / 2 < each) each = (most - fixed) / 2;
  h->data_max = each / MT_CHUNK * MT_CHUNK;
  h->segments_offset = h->data_offset + h->data_max;
  h->segments_max = (uint32_t)(each / MT_SEGMENT_SIZE);
  h->file_size = h->segments_offset + (uint64_t)h->segments_max * MT_SEGMENT_SIZE;
  return true;
}

static void discard(int fd) {
  int error = errno;
  close(fd);
  unlink(mt_region.real_path);
  unlink(mt_region.output.spool);
  unlink(mt_region.output.trace);
  errno = error;
}

static bool remember(int fd) {
  struct stat s, named;
  if (fstat(fd, &s) || !realpath(mt_region.output.spool, mt_region.real_path)) return false;
  mt_region.inode = s.st_ino;
  mt_region.device = s.st_dev;
  mt_region.owner = s.st_uid;
  if (!lstat(mt_region.real_path, &named) && named.st_ino == s.st_ino && named.st_dev == s.st_dev) return true;
  mt_region.real_path[0] = 0; /* somebody exchanged the link to it: what it leads to now is not ours to remove */
  return errno = ESTALE, false;
}

/* Everything that needs the descriptor. */
static int map_file(int fd, struct mt_spool_header *wanted, const char **what) {
  *what = "sizing the spool";
  if (!remember(fd) || ftruncate(fd, (off_t)wanted->file_size)) return -1;
  *what = "finding space for the spool (is the disk full?)";
  if (!allocate_fd(fd, 0, MT_PAGE)) return errno = ENOSPC, -1;
  *what = "mapping the spool";
  char *base = mmap(NULL, wanted->file_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return -1;
  mt_region.base = base;
  mt_region.size = wanted->file_size;
  return 0;
}

int mt_region_create(const char **what) {
  static struct mt_spool_header wanted;
  memset(&wanted, 0, sizeof wanted);
  *what = "planning the spool (a limit on file size or address space is too small)";
  if (!plan(&wanted)) return errno = EFBIG, -1;
  mt_region.real_path[0] = 0; /* until it is known, there is nothing to discard: a child inherited its parent's */
  refusals = 0;
  mt_region.index_ready = mt_region.data_ready = mt_region.rings_ready = mt_region.segments_ready = 0;
  int fd = mt_output_create(&mt_region.output, what);
  if (fd < 0) return -1;
  if (map_file(fd, &wanted, what)) {
    discard(fd);
    return -1;
  }
  close(fd);
  mt_identity_take(&wanted);
  mt_clock_start(&wanted);
  memcpy(mt_header(), &wanted, sizeof wanted);
  return 0;
}

void mt_region_forget(void) {
  if (mt_region.base) munmap(mt_region.base, mt_region.size);
  mt_region.base = NULL;
}
