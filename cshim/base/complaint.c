#define _GNU_SOURCE
#include "base/complaint.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "spool.h"

#define MT_COMPLAINTS 8u
#define MT_COMPLAINT_NAME 40u
#define MT_COMPLAINT_VALUE 60u

static char lines[MT_COMPLAINTS + 1][256];
static unsigned count, told;
static uint32_t *taken; /* shared with forked children: one of the family has told. NULL: each tells for itself */

static void start_anew(void) {
  if (!taken) taken = mt_sys_mmap(NULL, MT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (taken) __atomic_store_n(taken, 0, __ATOMIC_RELAXED);
}

static char *put(char *at, const char *text, size_t length, size_t most) {
  bool cut = length > most;
  for (size_t i = 0; i < (cut ? most : length); i++) *at++ = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
  return cut ? stpcpy(at, "...") : at;
}

void mt_complain(const char *name, size_t length, const char *value, const char *why) {
  if (!count) start_anew();
  if (count > MT_COMPLAINTS) return;
  if (count == MT_COMPLAINTS) {
    strcpy(lines[count++], "more settings mean nothing, see docs/environment.md");
    return;
  }
  char *at = put(stpcpy(lines[count++], "MEMTRACE_"), name, length, MT_COMPLAINT_NAME);
  if (value) *at++ = '=', at = put(at, value, strlen(value), MT_COMPLAINT_VALUE);
  strcpy(stpcpy(at, " "), why);
}

const char *mt_complaint_take(void) {
  bool others = count && !told && taken && __atomic_exchange_n(taken, 1, __ATOMIC_RELAXED);
  if (told < count && !others) return lines[told++];
  told = count = 0;
  return NULL;
}
