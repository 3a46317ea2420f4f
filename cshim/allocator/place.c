#define _GNU_SOURCE
#include "allocator/place.h"

#include "elf/symbol.h"
#include "spool/dict.h"

__thread struct mt_place mt_place;
uint32_t mt_place_tracking;

/* c10::cuda::CUDAStream, as it travels in two registers: the device, and a number that torch makes of the stream. */
struct stream {
  uint64_t device, number;
};

static struct stream (*current)(int8_t device);
static uint64_t (*handle_of)(const struct stream *stream);

bool mt_place_find(void) {
  struct mt_loaded library = mt_symbol_object("libc10_cuda.so");
  if (!library.dynamic) return false;
  handle_of = (uint64_t(*)(const struct stream *))mt_symbol_find(&library, "_ZNK3c104cuda10CUDAStream6streamEv");
  void *found = (void *)mt_symbol_find(&library, "_ZN3c104cuda20getCurrentCUDAStreamEa");
  __atomic_store_n((void **)&current, handle_of ? found : NULL, __ATOMIC_RELEASE);
  return handle_of && found;
}

static uint64_t current_stream(int device) {
  struct stream (*query)(int8_t) = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
  if (!query) return 0;
  struct stream stream = query((int8_t)device);
  return stream.number ? handle_of(&stream) : 0; /* number 0 is the default stream */
}

uint32_t mt_place_intern(int device) {
  struct mt_place seen = mt_place;
  mt_place = (struct mt_place){0, 0};
  uint64_t place[2] = {seen.stream ? seen.stream - 1 : current_stream(device), seen.pool};
  return place[0] | place[1] ? mt_dict_intern_limited(MT_DICT_PLACE, place, sizeof place) : 0;
}
