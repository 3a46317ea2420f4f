#define _GNU_SOURCE
#include "hooks/unhooked.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/thread.h"
#include "spool/dict.h"

#define MT_UNHOOKED 32u
#define MT_UNHOOKED_NAME 48u

/* A row is claimed by its state and published by it once filled. Names beyond these are dropped. */
static struct {
  uint32_t state; /* 0 free, 1 being filled, 2 filled */
  int version;
  char name[MT_UNHOOKED_NAME];
  uint64_t recorded_in; /* epoch of the spool that has it */
} rows[MT_UNHOOKED];

static void note_row(unsigned i) {
  char key[16 + MT_UNHOOKED_NAME] = "unhooked.", text[12];
  int n = sizeof text, version = rows[i].version;
  uint64_t epoch = __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_RELAXED);
  if (!epoch || __atomic_exchange_n(&rows[i].recorded_in, epoch, __ATOMIC_RELAXED) == epoch) return;
  strcat(key, rows[i].name);
  do text[--n] = (char)('0' + version % 10);
  while ((version /= 10) && n);
  mt_dict_info(key, text + n, sizeof text - (size_t)n);
}

void mt_unhooked_add(const char *base, int version) {
  for (unsigned i = 0; i < MT_UNHOOKED; i++) {
    uint32_t state = 0;
    if (__atomic_compare_exchange_n(&rows[i].state, &state, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      strncpy(rows[i].name, base, MT_UNHOOKED_NAME - 1);
      rows[i].version = version;
      __atomic_store_n(&rows[i].state, 2, __ATOMIC_RELEASE);
      return note_row(i);
    }
    if (state == 2 && rows[i].version == version && !strncmp(rows[i].name, base, MT_UNHOOKED_NAME - 1))
      return note_row(i);
  }
}

void mt_unhooked_report(void) {
  for (unsigned i = 0; i < MT_UNHOOKED; i++)
    if (__atomic_load_n(&rows[i].state, __ATOMIC_ACQUIRE) == 2) note_row(i);
}

uint32_t mt_unhooked_reached;

static int is_driver(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size, (void)unused;
  const char *slash = strrchr(object->dlpi_name, '/'), *name = slash ? slash + 1 : object->dlpi_name;
  return !strncmp(name, "libcuda.so", 10);
}

/* Every process ends here, so nothing is opened: dlopen, also with RTLD_NOLOAD, would search the disk for a library
 * that is not there. */
static bool driver_is_loaded(void) { return dl_iterate_phdr(is_driver, NULL); }

/* Whether the process has a device file mapped, as every process with a CUDA context does. */
static bool holds_device(void) {
  static const char wanted[] = "/dev/nvidia";
  char text[4096 + sizeof wanted];
  size_t kept = 0;
  bool found = false;
  int fd = mt_sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  for (ssize_t n; !found && (n = mt_sys_read(fd, text + kept, 4096)) > 0;) {
    size_t have = kept + (size_t)n;
    found = memmem(text, have, wanted, sizeof wanted - 1) != NULL;
    kept = have < sizeof wanted ? have : sizeof wanted - 2; /* a name may lie across two reads */
    memmove(text, text + have - kept, kept);
  }
  mt_sys_close(fd);
  return found;
}

const char *mt_unhooked_check(void) {
  static const char how[] = "a library was loaded with RTLD_DEEPBIND, or brings a loader of its own";
  if (mt_config.disabled || __atomic_load_n(&mt_unhooked_reached, __ATOMIC_RELAXED) || !driver_is_loaded() ||
      !holds_device())
    return NULL;
  return how;
}
