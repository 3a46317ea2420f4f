/* What cuGetProcAddress hands out, for every hooked base name, version and flag: the name under which that function is
 * exported, which wrappers share with what they wrap. Then an allocation under a version from the future, if the driver
 * has one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MT_HOOK(number, level, symbol, base, version, variant, ...) {base, version},
#define MT_CUSTOM MT_HOOK
#define MT_REPORT(...)
static const struct {
  const char *base;
  int version;
} rows[] = {
#include "hooks.def"
    {"cuInit", 2000}, {"cuMemGetInfo", 3020}, {"cuNoSuchCall", 2000}};
enum { ROWS = sizeof rows / sizeof *rows, FUTURE = 13990 };

typedef int (*get_v1)(const char *, void **, int, uint64_t);
typedef int (*get_v2)(const char *, void **, int, uint64_t, int *);

static const char *name_of(void *function) {
  Dl_info info;
  if (!function) return "none";
  return dladdr(function, &info) && info.dli_sname && info.dli_saddr == function ? info.dli_sname : "nameless";
}

static void ask(get_v1 v1, get_v2 v2, const char *base, int version) {
  for (uint64_t flags = 0; flags <= 2; flags++) {
    void *a = NULL, *b = NULL;
    int status = -1, first = v1(base, &a, version, flags), second = v2(base, &b, version, flags, &status);
    printf("%s %d %d: %d %s, %d %d %s\n", base, version, (int)flags, first, name_of(a), second, status, name_of(b));
  }
}

static bool first_of_base(int row) {
  for (int i = 0; i < row; i++)
    if (!strcmp(rows[i].base, rows[row].base)) return false;
  return rows[row].base[0];
}

int main(void) {
  static const int versions[] = {2000,  3020,  4000,  5000,  6050,  7000,  10000, 10010, 11000, 11020, 11040, 11080,
                                 12000, 12020, 12030, 12040, 12050, 12060, 12090, 13000, 13010, 13040, 13050, FUTURE};
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return 2;
  get_v1 v1 = (get_v1)dlsym(driver, "cuGetProcAddress");
  get_v2 v2 = (get_v2)dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"); /* of somebody who wants to be in between */
  if (!v2) v2 = (get_v2)dlsym(driver, "cuGetProcAddress_v2");
  for (int row = 0; row < ROWS; row++)
    for (size_t i = 0; first_of_base(row) && i < sizeof versions / sizeof *versions; i++)
      ask(v1, v2, rows[row].base, versions[i]);
  void *context, *found = NULL;
  uint64_t address = 0;
  int status = -1;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*create)(void **, unsigned, int) = (int (*)(void **, unsigned, int))dlsym(driver, "cuCtxCreate_v2");
  if (init(0) || create(&context, 0, 0)) return 3;
  int asked = v2("cuMemAlloc", &found, FUTURE, 0, &status);
  printf("future: %d %d, ", asked, status);
  /* three arguments, as the driver of the future has it; today's takes the first two */
  printf("%d\n", found ? ((int (*)(uint64_t *, size_t, const char *))found)(&address, 4242, "label") : -1);
  return 0;
}
