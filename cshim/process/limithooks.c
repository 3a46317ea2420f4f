#define _GNU_SOURCE
/* The hooked functions apart from what they do, since a test program with a sanitizer must keep the sanitizer's own. */
#include <sys/resource.h>

#include "process/guest.h"
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
  return mt_limit_both(process, (int)resource, limit, old);
}
MT_EXPORT int prlimit64(pid_t process, __rlimit_resource_t resource, const struct rlimit64 *limit,
                        struct rlimit64 *old) {
  return mt_limit_both(process, (int)resource, (const struct rlimit *)limit, (struct rlimit *)old);
}
