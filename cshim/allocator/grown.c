#define _GNU_SOURCE
/* The run in parts of equal numbers of reports, and the lowest value of each: what a pass or an iteration makes and
 * frees does not count. When there are too many parts, two become one. A device's reports come one at a time, under its
 * allocator's lock; a reader may see a part too many or too few. */
#include "allocator/grown.h"

#include <string.h>

#define MT_PARTS 32u
#define MT_ENOUGH 8u /* parts to judge by */
#define MT_DEVICES 16
#define MT_LEAST (1u << 20)

static struct run {
  uint64_t lowest[MT_PARTS], now, highest;
  uint32_t parts; /* that are complete */
  uint32_t span, seen; /* reports of a part, and of the one that goes on */
} runs[MT_DEVICES];

static uint64_t lower(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void end_part(struct run *r) {
  r->lowest[r->parts++] = r->now;
  r->seen = 0, r->now = UINT64_MAX;
  if (r->parts < MT_PARTS) return;
  for (uint32_t i = 0; i < MT_PARTS / 2; i++) r->lowest[i] = lower(r->lowest[2 * i], r->lowest[2 * i + 1]);
  r->parts = MT_PARTS / 2, r->span *= 2;
}

void mt_grown_note(int device, uint64_t allocated) {
  if (device < 0 || device >= MT_DEVICES) return;
  struct run *r = &runs[device];
  if (!r->span) *r = (struct run){.span = 1, .now = UINT64_MAX};
  r->now = lower(r->now, allocated);
  if (allocated > r->highest) r->highest = allocated;
  if (++r->seen >= r->span) end_part(r);
}

static bool has_grown(const struct run *r) {
  uint32_t first = r->parts / 4;
  if (r->parts < MT_ENOUGH) return false;
  for (uint32_t i = first + 1; i < r->parts; i++)
    if (r->lowest[i] < r->lowest[i - 1]) return false;
  uint64_t rise = r->lowest[r->parts - 1] - r->lowest[first];
  return rise >= MT_LEAST && rise >= r->highest / 10;
}

bool mt_grown(void) {
  for (int i = 0; i < MT_DEVICES; i++)
    if (has_grown(&runs[i])) return true;
  return false;
}
