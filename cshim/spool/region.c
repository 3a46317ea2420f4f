#define _GNU_SOURCE
#include "spool/region.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/thread.h"
#include "spool/identity.h"
#include "spool/cgroup.h"

#define MT_CHUNK (256u << 10)
#define MT_REFUSALS 1000u
#define MT_POPULATED 4u /* segments that get their pages together: one call for four threads */
#define MT_HARD_MAX (1ull << 30)
#define MT_MEMORY_PART 4u
#define MT_SEGMENTS_LEAST (1ull << 20)
#define MT_MANY_RINGS_FROM (64ull << 20) /* bytes that the file may have */

struct mt_region mt_region;
uint32_t mt_drainer;

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* Faulting pages in through the mapping reserves their blocks, too, and fails without a signal. For when the file
 * cannot be opened: it was deleted, the program changed its root or ran out of descriptors. Linux 5.14. */
static bool populate(uint64_t offset, uint64_t size) {
#ifdef MADV_POPULATE_WRITE
  return offset + size <= mt_region.size && !mt_sys_madvise(mt_region.base + offset, size, MADV_POPULATE_WRITE);
#else
  (void)offset, (void)size;
  return false;
#endif
}

/* By writing comes last: of two threads that do it for the same part one could undo a byte that the other has stored
 * since. */
static bool allocate_fd(int fd, uint64_t offset, uint64_t size) {
  if (mt_sys_allocate(fd, offset, size)) return true;
  return errno == EOPNOTSUPP &&
         ((mt_region.base && populate(offset, size)) || mt_sys_allocate_by_writing(fd, offset, size));
}

/* A file that grows over the limit raises SIGXFSZ in the program; what lies in its first size was checked when it was
 * made. */
static bool may_end_at(uint64_t end) {
  struct rlimit files;
  return end <= mt_region.size || mt_sys_getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur == RLIM_INFINITY ||
         end <= files.rlim_cur;
}

/* No descriptor is kept open: a program that closes all descriptors and opens its own files would have one of those
 * grown. */
int mt_region_open(void) {
  struct stat s;
  int fd = mt_sys_open(mt_region.real_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd >= 0 && (mt_sys_fstat(fd, &s) || s.st_ino != mt_region.inode || s.st_dev != mt_region.device)) {
    mt_sys_close(fd);
    return -1;
  }
  return fd;
}

static bool allocate(uint64_t offset, uint64_t size) {
  int error = errno;
  int fd = mt_region_open();
  bool done = fd >= 0 ? may_end_at(offset + size) && allocate_fd(fd, offset, size) : populate(offset, size);
  if (fd >= 0) mt_sys_close(fd);
  errno = error;
  return done;
}

/* On a full disk allocation takes far longer than an event should, so it is retried only now and then. */
static uint32_t refusals;

static bool backing_off(void) {
  uint32_t left = __atomic_load_n(&refusals, __ATOMIC_RELAXED);
  if (!left) return false;
  __atomic_store_n(&refusals, left - 1, __ATOMIC_RELAXED);
  return true;
}

bool mt_region_ensure(uint64_t *ready, uint64_t start, uint64_t upto, uint64_t limit) {
  uint64_t have = __atomic_load_n(ready, __ATOMIC_ACQUIRE);
  if (MT_LIKELY(upto <= have)) return true;
  if (upto > limit) return false;
  if (backing_off()) return false;
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

/* Maps a part of the spool. Without the advice every first touch of a page would read the file ahead, zeroes by the
 * megabyte: two thirds of what the start costs. */
static char *map_part(int fd, uint64_t offset, uint64_t size) {
  char *mapped = mt_sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, offset);
  if (mapped) mt_sys_madvise(mapped, size, MADV_RANDOM);
  return mapped;
}

/* Two threads may both map it; one of the mappings stays. */
static bool ensure_extent(uint32_t index) {
  char **extent = &mt_region.extents[index], *none = NULL;
  if (__atomic_load_n(extent, __ATOMIC_ACQUIRE)) return true;
  int error = errno, fd = mt_region_open();
  uint64_t offset =
      mt_header()->segments_offset + (uint64_t)mt_region.segments_first * MT_SEGMENT_SIZE + index * MT_EXTENT_SIZE;
  char *mapped = fd < 0 ? NULL : map_part(fd, offset, MT_EXTENT_SIZE);
  if (fd >= 0) mt_sys_close(fd);
  __atomic_store_n(&mt_region.extended, true,
                   __ATOMIC_SEQ_CST); /* first: a child forked right afterwards must reset it */
  if (mapped && !__atomic_compare_exchange_n(extent, &none, mapped, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    mt_sys_munmap(mapped, MT_EXTENT_SIZE);
  errno = error;
  return mapped != NULL;
}

/* How many segments are populated with this one: none beyond its mapping, after which the program's memory may be. */
static uint64_t populate_count(uint32_t number) {
  uint32_t first = mt_region.segments_first,
           left = number <= first ? first - number + 1
                                  : MT_EXTENT_SEGMENTS - (number - 1 - first) % MT_EXTENT_SEGMENTS;
  return left < MT_POPULATED ? left : MT_POPULATED;
}

bool mt_region_ensure_segment(uint32_t number) {
  struct mt_spool_header *h = mt_header();
  uint64_t offset = (uint64_t)(number - 1) * MT_SEGMENT_SIZE, limit = (uint64_t)h->segments_max * MT_SEGMENT_SIZE;
  if (!mt_region_ensure(&mt_region.segments_ready, h->segments_offset, offset + MT_SEGMENT_SIZE, limit)) return false;
  if (number > mt_region.segments_first && !ensure_extent((number - 1 - mt_region.segments_first) / MT_EXTENT_SEGMENTS))
    return false;
#ifdef MADV_POPULATE_WRITE
  if ((number - 1) % MT_POPULATED == 0) {
    int error = errno;
    mt_sys_madvise(mt_segment(number), populate_count(number) * MT_SEGMENT_SIZE, MADV_POPULATE_WRITE);
    errno = error;
  }
#endif
  return true;
}

/* How large a file and mapping the process's own limits leave: a file over RLIMIT_FSIZE would raise SIGXFSZ in the
 * program. */
static uint64_t allowed_size(void) {
  struct rlimit files, space;
  uint64_t most = UINT64_MAX;
  if (!mt_sys_getrlimit(RLIMIT_FSIZE, &files) && files.rlim_cur != RLIM_INFINITY) most = files.rlim_cur;
  if (!mt_sys_getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY && space.rlim_cur / 8 < most)
    most = space.rlim_cur / 8;
  return most;
}

static bool plan_layout(struct mt_spool_header *h, uint64_t most) {
  memcpy(h->magic, MT_SPOOL_MAGIC, sizeof MT_SPOOL_MAGIC);
  h->version = MT_SPOOL_VERSION;
  h->record_size = MT_RECORD_SIZE;
  h->segment_size = MT_SEGMENT_SIZE;
  h->rings_max = most < MT_MANY_RINGS_FROM ? MT_RINGS_FEW : MT_RINGS_MAX;
  h->index_max = MT_INDEX_MAX;
  h->rings_offset = MT_PAGE;
  h->index_offset = h->rings_offset + (uint64_t)h->rings_max * sizeof(struct mt_ring);
  h->data_offset = h->index_offset + (uint64_t)MT_INDEX_MAX * sizeof(struct mt_index_entry);
  uint64_t fixed = h->data_offset, each = mt_config.spool_max;
  if (most < fixed + 2 * MT_CHUNK) return false;
  if ((most - fixed) / 2 < each) each = (most - fixed) / 2;
  h->data_max = each / MT_CHUNK * MT_CHUNK;
  h->segments_offset = h->data_offset + h->data_max;
  h->segments_first = (uint32_t)(each / MT_SEGMENT_SIZE);
  h->file_size = h->segments_offset + (uint64_t)h->segments_first * MT_SEGMENT_SIZE;
  return true;
}

/* A tenth of what the file system has left, unless the user said how much. */
static uint64_t hard_max(int fd) {
  struct statfs fs;
  if (mt_config.spool_hard_max) return mt_config.spool_hard_max;
  uint64_t tenth = mt_sys(SYS_fstatfs, fd, &fs) ? 0 : (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 10;
  return tenth < MT_HARD_MAX ? tenth : MT_HARD_MAX;
}

/* How large the segments may become in a file that lies in memory: what does not fit into the process's control group
 * any more ends the program. */
static uint64_t memory_max(int fd) {
  struct statfs fs;
  if (mt_sys(SYS_fstatfs, fd, &fs) || (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)) return UINT64_MAX;
  uint64_t part = mt_cgroup_memory_available() / MT_MEMORY_PART;
  return part > MT_SEGMENTS_LEAST ? part : MT_SEGMENTS_LEAST;
}

/* How far the segments may grow beyond the first size: not at all where a limit has cut even that. */
static void plan_growth(struct mt_spool_header *h, uint64_t most, int fd) {
  uint64_t first = (uint64_t)h->segments_first * MT_SEGMENT_SIZE, hard = hard_max(fd), memory = memory_max(fd);
  if (first > memory) {
    first = memory / MT_CHUNK * MT_CHUNK;
    h->segments_first = (uint32_t)(first / MT_SEGMENT_SIZE);
    h->file_size = h->segments_offset + first;
  }
  if (hard > memory) hard = memory;
  most -= h->segments_offset;
  if (hard > most) hard = most;
  if (hard < first) hard = first;
  if (hard > first + MT_EXTENTS_MAX * MT_EXTENT_SIZE) hard = first + MT_EXTENTS_MAX * MT_EXTENT_SIZE;
  h->segments_max = (uint32_t)(hard / MT_SEGMENT_SIZE);
  mt_region.segments_first = h->segments_first;
}

static void discard(int fd) {
  int error = errno;
  mt_sys_close(fd);
  mt_sys_unlink(mt_region.real_path);
  mt_sys_unlink(mt_region.output.spool);
  mt_sys_unlink(mt_region.output.trace);
  errno = error;
}

/* The file's real path, links resolved: from /proc, or, where that is unavailable or the path is too long for it, the
 * name that was opened. */
static bool find_real_path(int fd, const struct stat *s) {
  static const char folder[] = "/proc/thread-self/fd/";
  char link[sizeof folder + 12], *at = link + sizeof link;
  struct stat named;
  *--at = 0;
  do *--at = (char)('0' + fd % 10);
  while (fd /= 10);
  memcpy(at -= sizeof folder - 1, folder, sizeof folder - 1);
  ssize_t n = mt_sys_readlink(at, mt_region.real_path, sizeof mt_region.real_path);
  if (n > 0 && (size_t)n < sizeof mt_region.real_path) {
    mt_region.real_path[n] = 0;
    if (!mt_sys_lstat(mt_region.real_path, &named) && named.st_ino == s->st_ino && named.st_dev == s->st_dev)
      return true;
  }
  n = mt_sys_readlink(mt_region.output.spool, mt_region.real_path, sizeof mt_region.real_path - 1);
  if (n > 0) mt_region.real_path[n] = 0;
  else strcpy(mt_region.real_path, mt_region.output.spool);
  return !mt_sys_lstat(mt_region.real_path, &named) && named.st_ino == s->st_ino && named.st_dev == s->st_dev;
}

static bool store_identity(int fd) {
  struct stat s;
  if (mt_sys_fstat(fd, &s)) return false;
  mt_region.inode = s.st_ino;
  mt_region.device = s.st_dev;
  mt_region.owner = s.st_uid;
  if (find_real_path(fd, &s)) return true;
  mt_region.real_path[0] = 0; /* the link was replaced: its target is another file */
  return errno = ESTALE, false;
}

/* Allocates the first chunk of each part, which every recording needs, while the file is open. A failure will recur for
 * the first event that needs room there. */
static void allocate_first(int fd, const struct mt_spool_header *h) {
  const struct {
    uint64_t *ready, start, end;
  } parts[] = {{&mt_region.rings_ready, h->rings_offset, h->index_offset},
               {&mt_region.index_ready, h->index_offset, h->data_offset},
               {&mt_region.data_ready, h->data_offset, h->segments_offset},
               {&mt_region.segments_ready, h->segments_offset, h->file_size}};
  for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
    if (parts[i].end - parts[i].start >= MT_CHUNK && mt_sys_allocate(fd, parts[i].start, MT_CHUNK))
      *parts[i].ready = MT_CHUNK;
}

/* Everything that needs the descriptor. */
static int map_file(int fd, struct mt_spool_header *wanted, uint64_t most, const char **what) {
  *what = "sizing the spool";
  plan_growth(wanted, most, fd);
  if (!store_identity(fd) || mt_sys(SYS_ftruncate, fd, wanted->file_size)) return -1;
  *what = "finding space for the spool (is the disk full?)";
  if (!allocate_fd(fd, 0, MT_PAGE)) return errno = ENOSPC, -1;
  *what = "mapping the spool";
  char *base = map_part(fd, 0, wanted->file_size);
  if (!base) return -1;
  allocate_first(fd, wanted);
  mt_region.base = base;
  mt_region.size = wanted->file_size;
  return 0;
}

int mt_region_create(const char **what) {
  static struct mt_spool_header wanted;
  memset(&wanted, 0, sizeof wanted);
  *what = "planning the spool (a limit on file size or address space is too small)";
  uint64_t most = allowed_size();
  if (!plan_layout(&wanted, most)) return errno = EFBIG, -1;
  mt_region.real_path[0] = 0; /* until it is known, there is nothing to discard: a child inherited its parent's */
  refusals = 0;
  mt_region.rings_retired = 0;
  mt_region.index_ready = mt_region.data_ready = mt_region.rings_ready = mt_region.segments_ready = 0;
  int fd = mt_output_create(&mt_region.output, what);
  if (fd < 0) return -1;
  if (map_file(fd, &wanted, most, what)) {
    discard(fd);
    return -1;
  }
  mt_sys_close(fd);
  mt_identity_fill(&wanted);
  mt_clock_start(&wanted);
  memcpy(mt_header(), &wanted, sizeof wanted);
  return 0;
}

void mt_region_reset(void) {
  if (!mt_region.base) return;
  mt_sys_munmap(mt_region.base, mt_region.size);
  mt_region.base = NULL;
  for (uint32_t i = 0; i < MT_EXTENTS_MAX && mt_region.extended; i++) {
    if (!mt_region.extents[i]) continue;
    mt_sys_munmap(mt_region.extents[i], MT_EXTENT_SIZE);
    mt_region.extents[i] = NULL;
  }
  mt_region.extended = false;
}
