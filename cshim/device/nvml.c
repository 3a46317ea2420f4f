#define _GNU_SOURCE
#include "device/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "hooks/original.h"

#define MT_NVML_LIBRARY "libnvidia-ml.so.1"
#define MT_NVML_PROCESSES 1024u

/* nvmlReturn_t */
enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18
};

/* NVML's structures, declared here without its header: NVML API Reference, nvmlMemory_t, nvmlMemory_v2_t,
 * nvmlProcessInfo_t. */
struct memory_v1 {
  unsigned long long total, free, used;
};

struct memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
#define MEMORY_V2_VERSION ((unsigned)sizeof(struct memory_v2) | 2u << 24)

struct process_v1 {
  unsigned pid;
  unsigned long long used;
};

struct process_v2 { /* v3 too */
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct memory_v2) == 40 && sizeof(struct process_v1) == 16 && sizeof(struct process_v2) == 24,
               "ABI");

#define USED_UNKNOWN (~0ull)

typedef int (*list_function)(mt_nvml_device device, unsigned *count, void *list);

struct list_call {
  list_function call;
  size_t entry; /* bytes of one entry */
};

static struct {
  void *library; /* of dlopen, NULL if it was not ours to open */
  int (*shutdown)(void);
  int (*by_uuid)(const char *uuid, mt_nvml_device *device);
  int (*memory_v2)(mt_nvml_device device, struct memory_v2 *memory);
  int (*memory_v1)(mt_nvml_device device, struct memory_v1 *memory);
  struct list_call compute, graphics;
} nvml;

static struct list_call find_list(mt_nvml_finder find, void *from, const char *v3, const char *v2, const char *v1) {
  struct list_call list = {(list_function)find(from, v3), sizeof(struct process_v2)};
  if (!list.call) list.call = (list_function)find(from, v2);
  if (!list.call) list = (struct list_call){(list_function)find(from, v1), sizeof(struct process_v1)};
  return list;
}

static const char *why_not_initialised(int status) {
  switch (status) {
    case NVML_ERROR_NO_PERMISSION: return "the management library says: no permission";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "the management library says: driver not loaded";
    case NVML_ERROR_OPERATING_SYSTEM: return "the management library says: the operating system blocks the device";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "the management library and the driver differ in version";
    default: return "the management library cannot be initialised";
  }
}

const char *mt_nvml_bind(mt_nvml_finder find, void *from) {
  int (*init)(void) = find(from, "nvmlInit_v2");
  nvml.shutdown = find(from, "nvmlShutdown");
  nvml.by_uuid = find(from, "nvmlDeviceGetHandleByUUID");
  nvml.memory_v2 = find(from, "nvmlDeviceGetMemoryInfo_v2");
  nvml.memory_v1 = find(from, "nvmlDeviceGetMemoryInfo");
  nvml.compute = find_list(find, from, "nvmlDeviceGetComputeRunningProcesses_v3",
                           "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses");
  nvml.graphics = find_list(find, from, "nvmlDeviceGetGraphicsRunningProcesses_v3",
                            "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses");
  if (!init || !nvml.shutdown || !nvml.by_uuid || !(nvml.memory_v1 || nvml.memory_v2))
    return "the management library is too old";
  int status = init();
  return status ? why_not_initialised(status) : NULL;
}

static void *find_in_library(void *library, const char *name) { return mt_original_dlsym(library, name); }

const char *mt_nvml_open(void) {
  nvml.library = dlopen(MT_NVML_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  if (!nvml.library) return "no management library (" MT_NVML_LIBRARY ")";
  const char *why = mt_nvml_bind(find_in_library, nvml.library);
  if (why) dlclose(nvml.library);
  return why;
}

/* The library stays loaded: unloading it does more than nvmlShutdown, and threads that it started may still run. */
void mt_nvml_close(void) { nvml.shutdown(); }

static void put_uuid(char *at, const uint8_t uuid[16]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    *at++ = digits[uuid[i] >> 4];
    *at++ = digits[uuid[i] & 15];
  }
  *at = 0;
}

mt_nvml_device mt_nvml_find(const uint8_t uuid[16], bool *slice) {
  static const char *const prefixes[] = {"GPU-", "MIG-"};
  char text[48];
  for (int i = 0; i < 2; i++) {
    mt_nvml_device device = NULL;
    put_uuid(stpcpy(text, prefixes[i]), uuid);
    *slice = i == 1;
    if (nvml.by_uuid(text, &device) == NVML_SUCCESS && device) return device;
  }
  return NULL;
}

bool mt_nvml_memory(mt_nvml_device device, struct mt_nvml_memory *out) {
  struct memory_v2 v2 = {.version = MEMORY_V2_VERSION};
  struct memory_v1 v1;
  if (nvml.memory_v2 && nvml.memory_v2(device, &v2) == NVML_SUCCESS) {
    if (v2.free > v2.total) return false;
    *out = (struct mt_nvml_memory){.total = v2.total, .used = v2.total - v2.free, .reserved = v2.reserved};
    return true;
  }
  if (!nvml.memory_v1 || nvml.memory_v1(device, &v1) != NVML_SUCCESS || v1.free > v1.total) return false;
  *out = (struct mt_nvml_memory){.total = v1.total, .used = v1.total - v1.free};
  return true;
}

/* Buffer for one list, used by a single thread. In entries of the larger kind, whatever the version. */
static struct process_v2 list[MT_NVML_PROCESSES];
static struct process_v1 processes[2 * MT_NVML_PROCESSES];

/* Adds a list's processes; one that uses both compute and graphics is in both lists with the same bytes. Returns the
 * count so far, or -1. */
static int add_list(struct list_call from, mt_nvml_device device, int have) {
  unsigned count = MT_NVML_PROCESSES;
  if (from.call(device, &count, list) != NVML_SUCCESS || count > MT_NVML_PROCESSES) return -1;
  for (unsigned i = 0; i < count; i++) {
    struct process_v1 p; /* how each version begins */
    memcpy(&p, (const char *)list + i * from.entry, sizeof p);
    int known = 0;
    while (known < have && processes[known].pid != p.pid) known++;
    if (known == have) processes[have++] = p;
  }
  return have;
}

static void sum_up(int count, uint32_t pid, struct mt_nvml_share *out) {
  *out = (struct mt_nvml_share){.others_known = true};
  bool listed = false;
  for (int i = 0; i < count; i++) {
    bool own = processes[i].pid == pid, known = processes[i].used != USED_UNKNOWN;
    listed |= own;
    if (own && known) {
      out->own = processes[i].used;
      out->own_known = true;
    } else if (known)
      out->others += processes[i].used;
    else if (!own)
      out->others_known = false;
  }
  if (!listed)
    out->why_not = "the device's list does not have this process: inside a container its numbers may be those outside";
  else if (!out->own_known)
    out->why_not = "the device does not say what each process uses (Windows and WSL do not)";
  else if (!out->others_known)
    out->why_not = "the device does not say what some other processes use";
}

void mt_nvml_share(mt_nvml_device device, uint32_t pid, struct mt_nvml_share *out) {
  *out = (struct mt_nvml_share){.why_not = "the management library does not list processes"};
  int count = nvml.compute.call ? add_list(nvml.compute, device, 0) : -1;
  if (count < 0) return;
  if (nvml.graphics.call) { /* not every device draws */
    int both = add_list(nvml.graphics, device, count);
    if (both >= 0) count = both;
  }
  sum_up(count, pid, out);
}
