#define _GNU_SOURCE
#include "base/configwarning.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "spool.h"

#define MT_CONFIG_WARNINGS 8u
#define MT_WARNING_NAME 40u
#define MT_WARNING_VALUE 60u

static char lines[MT_CONFIG_WARNINGS + 1][256];
static unsigned count, reported;
/* Shared with forked children: one of them has reported. NULL: each reports for itself. */
static uint32_t *family_reported;

static void reset(void) {
  if (!family_reported)
    family_reported = mt_sys_mmap(NULL, MT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (family_reported) __atomic_store_n(family_reported, 0, __ATOMIC_RELAXED);
}

static char *put(char *at, const char *text, size_t length, size_t most) {
  bool cut = length > most;
  for (size_t i = 0; i < (cut ? most : length); i++) *at++ = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
  return cut ? stpcpy(at, "...") : at;
}

void mt_config_warn(const char *name, size_t length, const char *value, const char *why) {
  if (!count) reset();
  if (count > MT_CONFIG_WARNINGS) return;
  if (count == MT_CONFIG_WARNINGS) {
    strcpy(lines[count++], "more settings mean nothing, see docs/environment.md");
    return;
  }
  char *at = put(stpcpy(lines[count++], "MEMTRACE_"), name, length, MT_WARNING_NAME);
  if (value) *at++ = '=', at = put(at, value, strlen(value), MT_WARNING_VALUE);
  strcpy(stpcpy(at, " "), why);
}

const char *mt_config_warning_take(void) {
  bool others = count && !reported && family_reported && __atomic_exchange_n(family_reported, 1, __ATOMIC_RELAXED);
  if (reported < count && !others) return lines[reported++];
  reported = count = 0;
  return NULL;
}
