/* Memory of other APIs: an object, and what is mapped of it, which outlives it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger.h"

struct external {
  void *memory, *levels;
  uint64_t at;
};

enum { SIZE = 1 << 20, LEVELS = 64 * 64 + 32 * 32 };

/* The structure as CUDA 13 has it, with room at its end. */
void *external_file(size_t size) {
  static __thread union {
    struct mt_cuda_external desc;
    char whole[104];
  } of;
  int fd = memfd_create("other", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, (off_t)size)) abort();
  memset(&of, 0, sizeof of);
  of.desc = (struct mt_cuda_external){.type = 1, .handle.fd = fd, .size = size};
  return &of;
}

static void make(struct actor *a, struct slot *s) {
  bool runtime = one_in(a, 2);
  struct external *own = OWN(external, s);
  s->context = runtime ? enter_primary(a) : enter_any(a);
  if (runtime) enter_runtime(s->context);
  *own = (struct external){0};
  if (runtime) DO(a, cudaImportExternalMemory, &own->memory, external_file(SIZE));
  else DO(a, cuImportExternalMemory, &own->memory, external_file(SIZE));
}

static void map_buffer(struct actor *a, struct slot *s, bool runtime) {
  union {
    struct mt_cuda_external_buffer desc;
    char whole[96];
  } part = {.desc = {.offset = 4096 * pick(a, 100), .size = 1 + pick(a, SIZE / 2)}};
  gain(a, s, 0, FOREIGN, device_of(s->context), part.desc.size, s->context);
  if (runtime)
    DO(a, cudaExternalMemoryGetMappedBuffer, (void **)&OWN(external, s)->at, OWN(external, s)->memory, &part.desc);
  else DO(a, cuExternalMemoryGetMappedBuffer, &OWN(external, s)->at, OWN(external, s)->memory, &part.desc);
}

static void map_levels(struct actor *a, struct slot *s, bool runtime) {
  static const union {
    struct mt_cuda_external_mipmap desc;
    char whole[128];
  } shape = {{.offset = 65536, .array = {64, 64, 0, 0x01, 1, 0}, .levels = 2}};
  static const union {
    struct mt_cuda_external_mipmap_rt desc;
    char whole[160];
  } shape_rt = {{.offset = 65536, .channels = {8, 0, 0, 0, 1}, .extent = {64, 64, 0}, .levels = 2}};
  gain(a, s, 1, FOREIGN, device_of(s->context), LEVELS, s->context);
  if (runtime)
    DO(a, cudaExternalMemoryGetMappedMipmappedArray, &OWN(external, s)->levels, OWN(external, s)->memory,
       &shape_rt.desc);
  else DO(a, cuExternalMemoryGetMappedMipmappedArray, &OWN(external, s)->levels, OWN(external, s)->memory, &shape.desc);
}

static void destroy(struct actor *a, struct external *own, bool runtime) {
  if (runtime) DO(a, cudaDestroyExternalMemory, own->memory);
  else DO(a, cuDestroyExternalMemory, own->memory);
  own->memory = NULL;
}

static void unmap(struct actor *a, struct slot *s, int which, bool runtime) {
  struct external *own = OWN(external, s);
  lose(a, s, which);
  if (which == 0 && runtime) DO(a, cudaFree, (void *)own->at);
  else if (which == 0) DO(a, cuMemFree_v2, own->at);
  else if (runtime) DO(a, cudaFreeMipmappedArray, own->levels);
  else DO(a, cuMipmappedArrayDestroy, own->levels);
}

static bool step(struct actor *a, struct slot *s) {
  struct external *own = OWN(external, s);
  int which = (int)pick(a, 2);
  bool runtime = contexts[s->context].primary && one_in(a, 2);
  enter(a, s->context);
  if (runtime) enter_runtime(s->context);
  if (s->hold[which].live) unmap(a, s, which, runtime);
  else if (own->memory && (a->draining || one_in(a, 4))) destroy(a, own, runtime);
  else if (own->memory && which == 0) map_buffer(a, s, runtime);
  else if (own->memory) map_levels(a, s, runtime);
  return !own->memory && !s->hold[0].live && !s->hold[1].live;
}

const struct kind external = {"external", 4, make, step, NULL, NULL};
