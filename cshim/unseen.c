#define _GNU_SOURCE
#include "unseen.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "dict.h"
#include "guest.h"

#define MT_UNSEEN 32u
#define MT_UNSEEN_NAME 48u

/* A row is claimed by its state and filled before that says so. Too many names are as good as these. */
static struct {
  uint32_t state; /* 0 free, 1 being filled, 2 filled */
  int version;
  char name[MT_UNSEEN_NAME];
  uint64_t told_in; /* epoch of the spool that has it */
} rows[MT_UNSEEN];

static void tell(unsigned i) {
  char key[16 + MT_UNSEEN_NAME] = "unhooked.", text[12];
  int n = sizeof text, version = rows[i].version;
  uint64_t epoch = __atomic_load_n(&mt_live->epoch, __ATOMIC_RELAXED);
  if (!epoch || __atomic_exchange_n(&rows[i].told_in, epoch, __ATOMIC_RELAXED) == epoch) return;
  strcat(key, rows[i].name);
  do text[--n] = (char)('0' + version % 10);
  while ((version /= 10) && n);
  mt_dict_info(key, text + n, sizeof text - (size_t)n);
}

void mt_unseen_add(const char *base, int version) {
  for (unsigned i = 0; i < MT_UNSEEN; i++) {
    uint32_t state = 0;
    if (__atomic_compare_exchange_n(&rows[i].state, &state, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      strncpy(rows[i].name, base, MT_UNSEEN_NAME - 1);
      rows[i].version = version;
      __atomic_store_n(&rows[i].state, 2, __ATOMIC_RELEASE);
      return tell(i);
    }
    if (state == 2 && rows[i].version == version && !strncmp(rows[i].name, base, MT_UNSEEN_NAME - 1)) return;
  }
}

void mt_unseen_tell(void) {
  for (unsigned i = 0; i < MT_UNSEEN; i++)
    if (__atomic_load_n(&rows[i].state, __ATOMIC_ACQUIRE) == 2) tell(i);
}
