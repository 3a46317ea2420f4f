#define _GNU_SOURCE
#include "hooks/probe.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/thread.h"
#include "hooks/original.h"
#include "spool/dict.h"

#define MT_DEVICES_MAX 64

static void note_version(void) {
  int (*query)(int *) = mt_driver_symbol("cuDriverGetVersion");
  int version;
  if (!query || query(&version)) return;
  char text[24];
  int n = 0, major = version / 1000, minor = version % 1000 / 10;
  if (major >= 10) text[n++] = (char)('0' + major / 10 % 10);
  text[n++] = (char)('0' + major % 10);
  text[n++] = '.';
  if (minor >= 10) text[n++] = (char)('0' + minor / 10);
  text[n++] = (char)('0' + minor % 10);
  mt_dict_info("cuda.driver_version", text, (size_t)n);
}

static void note_device(int32_t index) {
  int (*get)(int *, int) = mt_driver_symbol("cuDeviceGet");
  int (*get_name)(char *, int, int) = mt_driver_symbol("cuDeviceGetName");
  int (*get_total)(size_t *, int) = mt_driver_symbol("cuDeviceTotalMem_v2");
  int (*get_uuid)(void *, int) = mt_driver_symbol("cuDeviceGetUuid_v2");
  if (!get_uuid) get_uuid = mt_driver_symbol("cuDeviceGetUuid");
  char name[128] = {0}, uuid[16] = {0};
  size_t total = 0;
  int device;
  if (!get || get(&device, index) || !get_name || get_name(name, sizeof name - 1, device)) return;
  if (get_total && get_total(&total, device)) total = 0;
  if (get_uuid && get_uuid(uuid, device)) memset(uuid, 0, sizeof uuid);
  uint64_t bytes = total;
  uint32_t length = (uint32_t)strlen(name);
  mt_dict_append(MT_DICT_DEVICE,
                 (struct mt_bytes[]){{&index, sizeof index},
                                     {&length, sizeof length},
                                     {&bytes, sizeof bytes},
                                     {uuid, sizeof uuid},
                                     {name, length}},
                 5);
}

void mt_probe_devices(void) {
  static uint64_t told_in; /* epoch of the spool that has them */
  uint64_t epoch = __atomic_load_n(&mt_epoch_page->epoch, __ATOMIC_RELAXED);
  if (__atomic_load_n(&told_in, __ATOMIC_RELAXED) == epoch ||
      __atomic_exchange_n(&told_in, epoch, __ATOMIC_RELAXED) == epoch)
    return;
  int n = 0, error = errno;
  int (*count)(int *) = mt_driver_symbol("cuDeviceGetCount");
  note_version();
  if (count && !count(&n))
    for (int i = 0; i < n && i < MT_DEVICES_MAX; i++) note_device(i);
  errno = error;
}
