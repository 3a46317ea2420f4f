#define _GNU_SOURCE
#include "record/early.h"

#include <stdbool.h>
#include <string.h>

#include "base/config.h"
#include "base/sys.h"
#include "base/thread.h"
#include "include/memtrace.h"

struct early_event {
  uint64_t number;
  uint16_t size;
  uint8_t kind;
  char name[MEMTRACE_NAME_MAX];
};

static struct early_event events[MT_EARLY_MAX];
static uint32_t count;     /* ever kept; the latest ones are there */
static uint32_t locked;    /* thread that holds it; a signal handler that finds its own gives up */
static uint32_t flushed_in; /* pid of the process that has recorded them */

static bool lock(void) {
  uint32_t self = (uint32_t)mt_sys_gettid();
  for (;;) {
    uint32_t holder = 0;
    if (__atomic_compare_exchange_n(&locked, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
    if (holder == self) return false;
    mt_sys_yield();
  }
}

static void unlock(void) { __atomic_store_n(&locked, 0, __ATOMIC_RELEASE); }

void mt_early_add(uint8_t kind, uint64_t number, const char *name, size_t size) {
  if (mt_config.disabled || mt_recorder_is_off() || mt_recorder_has_spool() || size > MEMTRACE_NAME_MAX || !lock())
    return;
  struct early_event *m = &events[count++ % MT_EARLY_MAX];
  m->kind = kind;
  m->number = number;
  m->size = (uint16_t)size;
  if (size) memcpy(m->name, name, size);
  unlock();
}

void mt_early_flush(void (*record)(uint8_t kind, uint64_t number, const char *name, size_t size)) {
  if (!__atomic_load_n(&count, __ATOMIC_ACQUIRE)) return;
  uint32_t here = (uint32_t)mt_sys_getpid();
  if (__atomic_exchange_n(&flushed_in, here, __ATOMIC_ACQ_REL) == here || !lock()) return;
  for (uint32_t i = count > MT_EARLY_MAX ? count - MT_EARLY_MAX : 0; i < count; i++) {
    const struct early_event *m = &events[i % MT_EARLY_MAX];
    record(m->kind, m->number, m->name, m->size);
  }
  unlock();
}
