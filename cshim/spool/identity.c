#define _GNU_SOURCE
#include "spool/identity.h"

#include <string.h>

#include "base/sys.h"

#define MT_STAT_START 22 /* field of /proc/PID/stat, in clock ticks since boot */

/* 0 where there is no such process. */
static uint64_t start_of(const char *path) {
  char text[1024];
  if (mt_sys_read_file(path, text, sizeof text) <= 0) return 0;
  char *p = strrchr(text, ')'); /* the name may hold anything */
  for (int field = 2; p && field < MT_STAT_START; field++) p = strchr(p + 1, ' ');
  uint64_t value = 0;
  for (p = p ? p + 1 : text + strlen(text); *p >= '0' && *p <= '9'; p++) value = value * 10 + (uint64_t)(*p - '0');
  return value;
}

static uint64_t start_of_process(uint32_t pid) {
  char path[48], digits[12];
  size_t i = sizeof digits;
  digits[--i] = 0;
  do digits[--i] = (char)('0' + pid % 10), pid /= 10;
  while (pid);
  stpcpy(stpcpy(stpcpy(path, "/proc/"), digits + i), "/stat");
  return start_of(path);
}

/* The same for all processes of a boot, so children inherit it. */
static uint64_t boot_hash(void) {
  static uint64_t known;
  uint64_t hash = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (hash) return hash;
  char text[64];
  if (mt_sys_read_file("/proc/sys/kernel/random/boot_id", text, sizeof text) <= 0) text[0] = 0;
  hash = 14695981039346656037ull; /* FNV-1a, computed alike in internal/spool */
  for (const char *p = text; *p && *p != '\n'; p++) hash = (hash ^ (uint8_t)*p) * 1099511628211ull;
  __atomic_store_n(&known, hash, __ATOMIC_RELAXED);
  return hash;
}

static uint64_t pid_namespace(void) {
  struct stat s;
  return mt_sys_stat("/proc/thread-self/ns/pid", &s) ? 0 : s.st_ino;
}

void mt_identity_fill(struct mt_spool_header *h) {
  h->pid = mt_sys_getpid();
  h->process_start = start_of("/proc/self/stat");
  h->boot_hash = boot_hash();
  h->pid_namespace = pid_namespace();
}

bool mt_identity_is_alive(const struct mt_spool_header *h) {
  if (h->boot_hash != boot_hash()) return false;
  if (h->pid_namespace != pid_namespace()) return true;
  return start_of_process((uint32_t)h->pid) == h->process_start;
}
