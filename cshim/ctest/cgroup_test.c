/* What control groups leave of memory. */
#define _GNU_SOURCE
#include "spool/cgroup.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"

static char root[256];

static void put(const char *folder, const char *file, const char *text) {
  char path[512];
  for (const char *at = folder; *at; at++) {
    if (at != folder && at[1] != '/' && at[1]) continue;
    snprintf(path, sizeof path, "%s%.*s", root, (int)(at - folder + 1), folder);
    mkdir(path, 0700);
  }
  snprintf(path, sizeof path, "%s%s/%s", root, folder, file);
  FILE *out = fopen(path, "w");
  CHECK(out);
  fputs(text, out);
  fclose(out);
}

static void groups(void) {
  snprintf(root, sizeof root, "%s", check_output("groups"));
  mkdir(root, 0700);
  CHECK_EQ(mt_cgroup_memory_available_in("4:memory:/a/b\n0::/\n", root), UINT64_MAX);
  put("/memory/a/b", "memory.limit_in_bytes", "9223372036854771712\n");
  put("/memory/a/b", "memory.usage_in_bytes", "1000\n");
  put("/memory/a", "memory.limit_in_bytes", "5000\n");
  put("/memory/a", "memory.usage_in_bytes", "2000\n");
  CHECK_EQ(mt_cgroup_memory_available_in("5:cpu:/x\n4:memory:/a/b\n0::/\n", root), 3000);
  CHECK_EQ(mt_cgroup_memory_available_in("4:blkio,memory:/a/gone\n", root), 3000);
  CHECK_EQ(mt_cgroup_memory_available_in("4:memory2:/a/b\n", root), UINT64_MAX);
  CHECK_EQ(mt_cgroup_memory_available_in("nonsense\n:\n", root), UINT64_MAX);
  put("/c/d", "memory.max", "max\n");
  put("/c/d", "memory.current", "70\n");
  CHECK_EQ(mt_cgroup_memory_available_in("0::/c/d\n", root), UINT64_MAX);
  put("/c", "memory.max", "100\n");
  put("/c", "memory.current", "300\n");
  CHECK_EQ(mt_cgroup_memory_available_in("0::/c/d", root), 0);
  put("", "memory.max", "4096");
  put("", "memory.current", "96");
  CHECK_EQ(mt_cgroup_memory_available_in("0::/\n", root), 4000); /* a namespace of groups */
}

int main(void) {
  static const struct check_case cases[] = {{"groups", groups}};
  return check_main("cgroup", cases, sizeof cases / sizeof *cases);
}
