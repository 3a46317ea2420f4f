#define _GNU_SOURCE
#include "complaint.h"

#include <stdbool.h>
#include <string.h>

#define MT_COMPLAINTS 8u
#define MT_COMPLAINT_NAME 40u
#define MT_COMPLAINT_VALUE 60u

static char lines[MT_COMPLAINTS + 1][256];
static unsigned count, told;

static char *put(char *at, const char *text, size_t length, size_t most) {
  bool cut = length > most;
  for (size_t i = 0; i < (cut ? most : length); i++) *at++ = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
  return cut ? stpcpy(at, "...") : at;
}

void mt_complain(const char *name, size_t length, const char *value, const char *why) {
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
  if (told < count) return lines[told++];
  told = count = 0;
  return NULL;
}
