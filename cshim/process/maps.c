#define _GNU_SOURCE
#include "process/maps.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/sys.h"

#define MT_MAPS_PIECE 4096u /* the kernel gives whole lines, and no path is longer */

static uint64_t number(const char **at, unsigned base) {
  uint64_t n = 0;
  for (;; ++*at) {
    unsigned digit = **at >= '0' && **at <= '9'   ? (unsigned)(**at - '0')
                     : **at >= 'a' && **at <= 'f' ? (unsigned)(**at - 'a') + 10
                                                  : 16;
    if (digit >= base) return n;
    n = n * base + digit;
  }
}

/* START-END PERMISSIONS OFFSET MAJOR:MINOR INODE NAME */
static bool parse(const char *line, struct mt_map *map) {
  map->start = number(&line, 16);
  if (*line++ != '-') return false;
  map->end = number(&line, 16);
  if (*line++ != ' ' || strnlen(line, 5) < 5) return false;
  memcpy(map->permissions, line, sizeof map->permissions);
  line += sizeof map->permissions + 1;
  map->offset = number(&line, 16);
  if (*line++ != ' ') return false;
  unsigned major = (unsigned)number(&line, 16);
  if (*line++ != ':') return false;
  map->device = makedev(major, (unsigned)number(&line, 16));
  if (*line++ != ' ') return false;
  map->inode = number(&line, 10);
  return true;
}

bool mt_maps_each(bool (*take)(const struct mt_map *map, void *argument), void *argument) {
  char text[2 * MT_MAPS_PIECE + 1];
  size_t kept = 0;
  bool more = true;
  int fd = mt_sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  for (ssize_t n; more && (n = mt_sys_read(fd, text + kept, sizeof text - 1 - kept)) > 0;) {
    char *line = text, *end;
    text[kept += (size_t)n] = 0;
    for (struct mt_map map; more && (end = memchr(line, '\n', kept - (size_t)(line - text))); line = end + 1)
      if (parse(line, &map)) more = take(&map, argument);
    kept -= (size_t)(line - text);
    if (kept == sizeof text - 1) kept = 0; /* no such line */
    memmove(text, line, kept);
  }
  mt_sys_close(fd);
  return true;
}
