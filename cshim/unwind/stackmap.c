#include "unwind/unwind.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/sandbox.h"
#include "base/sys.h"

#define MAPS "/proc/self/maps"
#define MAPS_PIECE 2048 /* threads may have small stacks */

/* PROCMAP_QUERY, struct procmap_query: Linux 6.11, include/uapi/linux/fs.h. Older headers lack the declaration. */
struct map_query {
  uint64_t size, flags, address;                  /* in */
  uint64_t start, end, is, page_size, offset, inode; /* out */
  uint32_t device_major, device_minor, name_size, build_id_size;
  uint64_t name, build_id;
};
_Static_assert(sizeof(struct map_query) == 104, "as the kernel has it");
#define MAP_QUERY _IOWR('f', 17, struct map_query)
enum { MAP_READABLE = 1, MAP_WRITABLE = 2 };

enum lookup { LOOKUP_UNSUPPORTED, LOOKUP_NO, LOOKUP_YES };

static enum lookup query_mapping(int fd, uintptr_t sp, struct mt_stack_bounds *bounds) {
  struct map_query q = {.size = sizeof q, .address = sp};
  if (mt_sys(SYS_ioctl, fd, MAP_QUERY, &q)) return errno == ENOENT ? LOOKUP_NO : LOOKUP_UNSUPPORTED;
  *bounds = (struct mt_stack_bounds){q.start, q.end};
  return (q.is & (MAP_READABLE | MAP_WRITABLE)) == (MAP_READABLE | MAP_WRITABLE) ? LOOKUP_YES : LOOKUP_NO;
}

/* Lines begin with START-END PERMISSIONS in hexadecimal; read byte by byte, since a piece may end anywhere in them. */
struct line {
  uintptr_t start, end;
  unsigned field, column; /* of the field */
  bool readable, writable;
};

static void parse_char(struct line *l, char c) {
  if (c == '\n') {
    *l = (struct line){0};
  } else if (l->field < 2 && (c == '-' || c == ' ')) {
    l->field++;
    l->column = 0;
  } else if (l->field < 2) {
    uintptr_t *number = l->field ? &l->end : &l->start;
    *number = *number << 4 | (uintptr_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  } else if (l->field == 2) {
    if (l->column == 0) l->readable = c == 'r';
    if (l->column == 1) l->writable = c == 'w';
    if (++l->column == 2) l->field++;
  }
}

static bool scan_maps(int fd, uintptr_t sp, struct mt_stack_bounds *bounds) {
  char piece[MAPS_PIECE];
  struct line line = {0};
  for (;;) {
    ssize_t n = mt_sys_read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    for (ssize_t i = 0; i < n; i++) {
      unsigned before = line.field;
      parse_char(&line, piece[i]);
      if (before != 2 || line.field != 3 || sp < line.start || sp >= line.end) continue;
      *bounds = (struct mt_stack_bounds){line.start, line.end};
      return line.readable && line.writable;
    }
  }
}

bool mt_stack_find(uintptr_t sp, struct mt_stack_bounds *bounds) {
  int error = errno, fd = mt_sys_open(MAPS, O_RDONLY | O_CLOEXEC, 0);
  enum lookup lookup = LOOKUP_UNSUPPORTED;
  if (fd >= 0) {
    if (mt_sandbox_kind() != MT_SANDBOX_OWN) lookup = query_mapping(fd, sp, bounds);
    if (lookup == LOOKUP_UNSUPPORTED) lookup = scan_maps(fd, sp, bounds) ? LOOKUP_YES : LOOKUP_NO;
    mt_sys_close(fd);
  }
  errno = error;
  return lookup == LOOKUP_YES;
}
