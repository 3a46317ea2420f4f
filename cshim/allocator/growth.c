#define _GNU_SOURCE
/* The run in parts of equal numbers of reports, and the minimum of each: temporaries of a pass or an iteration do not
 * count. When there are too many parts, pairs are merged. A thread that finds the list of parts locked skips it. */
#include "allocator/growth.h"

#define MT_PARTS 32u
#define MT_PARTS_MIN 8u /* parts to judge by */
#define MT_RISE_MIN (1u << 20)
#define MT_REPORTS_MIN 2048u /* before a rise is worth a search */

struct mt_growth_part mt_growth_parts[MT_GROWTH_DEVICES] = {[0 ... MT_GROWTH_DEVICES - 1] = {UINT64_MAX, 0, 0, 1}};

static struct run {
  uint64_t lowest[MT_PARTS];
  uint32_t parts; /* that are complete */
  uint32_t span; /* reports of a part; 0: one */
  int busy; /* a thread reads or writes this */
} runs[MT_GROWTH_DEVICES];

static void (*on_rise)(void);

void mt_growth_on_rise(void (*call)(void)) { on_rise = call; }

static uint64_t lower(uint64_t a, uint64_t b) { return a < b ? a : b; }

static bool try_lock(struct run *r) { return !__atomic_exchange_n(&r->busy, 1, __ATOMIC_ACQUIRE); }
static void unlock(struct run *r) { __atomic_store_n(&r->busy, 0, __ATOMIC_RELEASE); }

static uint64_t lowest_of(const struct run *r, uint32_t from, uint32_t to) {
  uint64_t lowest = UINT64_MAX;
  for (uint32_t i = from; i < to; i++) lowest = lower(lowest, r->lowest[i]);
  return lowest;
}

/* Most of it must still be there. */
static bool rose(const struct run *r, const struct mt_growth_part *now) {
  uint64_t highest = __atomic_load_n(&now->highest, __ATOMIC_RELAXED);
  if (r->parts < MT_PARTS_MIN) return false;
  uint32_t quarter = r->parts / 4;
  uint64_t second = lowest_of(r, quarter, 2 * quarter), third = lowest_of(r, 2 * quarter, 3 * quarter);
  uint64_t fourth = lowest_of(r, 3 * quarter, r->parts);
  uint64_t rise = fourth - second;
  if (third < second || fourth < third || rise < MT_RISE_MIN || rise < highest / 16) return false;
  return __atomic_load_n(&now->allocated, __ATOMIC_RELAXED) >= second + rise / 2;
}

void mt_growth_end_part(int device, uint64_t allocated) {
  struct mt_growth_part *part = &mt_growth_parts[device];
  struct run *r = &runs[device];
  bool rises = false;
  if (!try_lock(r)) return;
  if (!r->span) r->span = 1;
  r->lowest[r->parts++] = lower(__atomic_load_n(&part->lowest, __ATOMIC_RELAXED), allocated);
  if (r->parts == MT_PARTS) {
    for (uint32_t i = 0; i < MT_PARTS / 2; i++) r->lowest[i] = lower(r->lowest[2 * i], r->lowest[2 * i + 1]);
    r->parts = MT_PARTS / 2, r->span *= 2;
    rises = r->span >= MT_REPORTS_MIN / r->parts && rose(r, part);
  }
  __atomic_store_n(&part->lowest, UINT64_MAX, __ATOMIC_RELAXED);
  __atomic_store_n(&part->left, r->span, __ATOMIC_RELAXED);
  unlock(r);
  if (rises && on_rise) on_rise();
}

bool mt_growth_detected(void) {
  bool grown = false;
  for (int i = 0; i < MT_GROWTH_DEVICES && !grown; i++) {
    if (!try_lock(&runs[i])) continue;
    grown = rose(&runs[i], &mt_growth_parts[i]);
    unlock(&runs[i]);
  }
  return grown;
}

uint64_t mt_growth_allocated(void) {
  uint64_t sum = 0;
  for (int i = 0; i < MT_GROWTH_DEVICES; i++) sum += __atomic_load_n(&mt_growth_parts[i].allocated, __ATOMIC_RELAXED);
  return sum;
}
