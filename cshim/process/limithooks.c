#define _GNU_SOURCE
/* The hooked functions apart from what they do, since a test program with a sanitizer must keep the sanitizer's own. */
#include <stdarg.h>
#include <sys/resource.h>

#include "process/recorder.h"
#include "process/limit.h"

/* On 64 bits the C library's two kinds of each mean the same. */
MT_EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit) {
  return mt_limit_set((int)resource, limit);
}
MT_EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit) {
  return mt_limit_set((int)resource, (const struct rlimit *)limit);
}
MT_EXPORT int getrlimit(__rlimit_resource_t resource, struct rlimit *limit) {
  return mt_limit_get((int)resource, limit);
}
MT_EXPORT int getrlimit64(__rlimit_resource_t resource, struct rlimit64 *limit) {
  return mt_limit_get((int)resource, (struct rlimit *)limit);
}
MT_EXPORT int prlimit(pid_t process, __rlimit_resource_t resource, const struct rlimit *limit, struct rlimit *old) {
  return mt_limit_prlimit(process, (int)resource, limit, old);
}
MT_EXPORT int prlimit64(pid_t process, __rlimit_resource_t resource, const struct rlimit64 *limit,
                        struct rlimit64 *old) {
  return mt_limit_prlimit(process, (int)resource, (const struct rlimit *)limit, (struct rlimit *)old);
}

/* As the C library has it: four arguments are passed on, whatever was given. */
MT_EXPORT int prctl(int option, ...);
MT_EXPORT int prctl(int option, ...) {
  unsigned long arguments[4];
  va_list list;
  va_start(list, option);
  for (int i = 0; i < 4; i++) arguments[i] = va_arg(list, unsigned long);
  va_end(list);
  return mt_limit_prctl(option, arguments);
}
