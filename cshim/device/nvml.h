/* The device's own figures of its memory, by NVML (libnvidia-ml.so.1, part of the driver). It is loaded at run time,
 * and only a handful of its functions are used: if the library were linked to it, no program would start where it is
 * missing. All calls come from one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct mt_nvml_device *mt_nvml_device;

struct mt_nvml_memory {
  uint64_t total;
  uint64_t used;     /* everything that is not free, what the driver keeps included */
  uint64_t reserved; /* kept by the driver and the firmware; 0 where NVML is too old to report it */
};

struct mt_nvml_share {
  uint64_t own, others; /* bytes */
  bool own_known;
  bool others_known;   /* every listed process has a figure */
  const char *why_not; /* why own or others is unknown, NULL if both are known; a literal */
};

/* Finds a function by name, NULL if it is not there. */
typedef void *(*mt_nvml_finder)(void *from, const char *name);

/* Loads and initialises the library. NULL on success, else why there is none: a text that stays valid. */
const char *mt_nvml_open(void);

/* The same with functions that find() knows. */
const char *mt_nvml_bind(mt_nvml_finder find, void *from);

/* Shuts NVML down; nothing below may be called afterwards. */
void mt_nvml_close(void);

/* The device with the UUID of cuDeviceGetUuid: ordinals differ between CUDA and NVML. NULL if there is none; *slice
 * marks a part of a GPU (MIG). */
mt_nvml_device mt_nvml_find(const uint8_t uuid[16], bool *slice);

/* Cheap: tens of microseconds. False when the library refuses. */
bool mt_nvml_memory(mt_nvml_device device, struct mt_nvml_memory *out);

/* Expensive: milliseconds, under a lock of the driver. pid is this process's number in NVML's lists. */
void mt_nvml_share(mt_nvml_device device, uint32_t pid, struct mt_nvml_share *out);
