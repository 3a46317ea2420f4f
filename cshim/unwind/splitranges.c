#define _GNU_SOURCE
#include "unwind/splitranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "elf/loaded.h"
#include "unwind/unwind.h"

#define CANDIDATES 64u
#define JUMPS 3u /* this many in each direction prove a part: bytes that only look like jumps do not match both ways */
#define REACH ((ptrdiff_t)64 << 20) /* larger than the code of an interpreter */

struct candidate {
  struct mt_code_range range;
  unsigned jumps;
};

static bool lies_in(uintptr_t pc, uintptr_t start, uintptr_t end) { return pc >= start && pc < end; }

/* The target of the direct jump, conditional or not, whose encoding begins at code; 0 if there is none. Where
 * instructions begin is not known: any byte may be one. */
#if defined(__x86_64__)
#define STEP 1u
#define LONGEST 6u

static uintptr_t jump_target(const uint8_t *code) {
  unsigned length = code[0] == 0xe9 ? 1 : code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2 : 0;
  if (!length) return 0;
  int32_t distance;
  memcpy(&distance, code + length, sizeof distance);
  return (uintptr_t)code + length + sizeof distance + (uintptr_t)(intptr_t)distance;
}
#elif defined(__aarch64__)
#define STEP 4u
#define LONGEST 4u

static uintptr_t jump_target(const uint8_t *code) {
  uint32_t word;
  memcpy(&word, code, sizeof word);
  intptr_t distance = 0;
  if (word >> 26 == 5)
    distance = (intptr_t)((int32_t)(word << 6) >> 4); /* b */
  else if (word >> 24 == 0x54 || (word >> 25 & 0x3f) == 0x1a)
    distance = (intptr_t)((int32_t)(word << 8) >> 13) * 4; /* b.cond, cbz, cbnz */
  return distance ? (uintptr_t)code + (uintptr_t)distance : 0;
}
#else
#define STEP 1u
#define LONGEST 1u

static uintptr_t jump_target(const uint8_t *code) { return (void)code, 0; }
#endif

static bool readable(uintptr_t start, uintptr_t end) { return mt_loaded_code(end, end - start) != NULL; }

/* Jumps from [start, end) into the middle of the other range. */
static unsigned jumps_into(uintptr_t start, uintptr_t end, uintptr_t first, uintptr_t last) {
  unsigned count = 0;
  for (uintptr_t at = start; at + LONGEST <= end && count < JUMPS; at += STEP) {
    uintptr_t target = jump_target((const uint8_t *)at);
    count += target != first && lies_in(target, first, last);
  }
  return count;
}

static void count_jump(struct candidate *list, unsigned *used, uintptr_t target) {
  for (unsigned i = 0; i < *used; i++) {
    if (!lies_in(target, list[i].range.start, list[i].range.end)) continue;
    list[i].jumps++;
    return;
  }
  struct candidate fresh = {.jumps = 1};
  if (*used < CANDIDATES && mt_unwind_function(target, &fresh.range.start, &fresh.range.end)) list[(*used)++] = fresh;
}

unsigned mt_split_ranges(uintptr_t start, uintptr_t end, struct mt_code_range *out) {
  struct candidate list[CANDIDATES];
  unsigned used = 0, found = 0;
  if (!readable(start, end)) return 0;
  for (uintptr_t at = start; at + LONGEST <= end; at += STEP) {
    uintptr_t target = jump_target((const uint8_t *)at);
    ptrdiff_t distance = (ptrdiff_t)(target - start);
    if (target && !lies_in(target, start, end) && distance > -REACH && distance < REACH)
      count_jump(list, &used, target);
  }
  for (unsigned i = 0; i < used && found < MT_SPLIT_RANGES; i++) {
    const struct mt_code_range *part = &list[i].range;
    if (list[i].jumps < JUMPS || !readable(part->start, part->end) ||
        jumps_into(part->start, part->end, start, end) < JUMPS)
      continue;
    out[found++] = *part;
  }
  return found;
}
