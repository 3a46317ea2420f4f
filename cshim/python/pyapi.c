#include "python/pyapi.h"

#include <stdint.h>
#include <string.h>

#include "python/interpreter.h"

bool mt_pyapi_find(const char *names, void *places) {
  char *place = places;
  for (; *names; names += strlen(names) + 1, place += sizeof(uintptr_t)) {
    bool optional = *names == '?';
    uintptr_t address = mt_interpreter_symbol(names + optional);
    if (!address && !optional) return false;
    memcpy(place, &address, sizeof address);
  }
  return true;
}
