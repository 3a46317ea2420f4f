// Functions that are inlined into each other several levels deep, split by the compiler, and called through a loop.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline __attribute__((always_inline)) uint32_t rotate(uint32_t x, int by) {
  return (x << by) | (x >> (32 - by));
}

static inline __attribute__((always_inline)) uint32_t mix(uint32_t x) {
  x ^= rotate(x, 13);
  x *= 0x9e3779b1u;
  return x ^ rotate(x, 7);
}

static inline __attribute__((always_inline)) uint32_t hash(const uint8_t *p, size_t n) {
  uint32_t h = 1;
  for (size_t i = 0; i < n; i++) {
    h = mix(h + p[i]);
    if (h == 7)
      h = mix(h);
  }
  return h;
}

__attribute__((noinline)) uint32_t table_lookup(const uint32_t *table, size_t n, const char *key) {
  uint32_t h = hash((const uint8_t *)key, strlen(key));
  for (size_t i = 0; i < n; i++)
    if (table[(h + i) % n] == h)
      return (uint32_t)i;
  return 0;
}

static __attribute__((noinline)) int rarely(int code) {
  if (__builtin_expect(code > 1000, 0)) {
    fprintf(stderr, "code %d\n", code);
    abort();
  }
  return code + 1;
}

int api_call(int n) {
  uint32_t table[64];
  for (int i = 0; i < 64; i++)
    table[i] = mix((uint32_t)(i * n));
  return rarely((int)table_lookup(table, 64, "key"));
}

int main(int argc, char **argv) {
  (void)argv;
  return api_call(argc) == 12345;
}
