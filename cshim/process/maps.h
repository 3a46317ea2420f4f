/* The process's memory map, line by line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mt_map {
  uintptr_t start, end;
  char permissions[4]; /* "rwxp" and "-" */
  uint64_t offset, device, inode; /* of the file, 0 0 0 without one; device as stat() has it */
};

/* Calls take for each mapping, lowest first, until it returns false. It may unmap what it is given. False where the map
 * cannot be read. */
bool mt_maps_each(bool (*take)(const struct mt_map *map, void *argument), void *argument);
