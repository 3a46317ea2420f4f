#include "stub.h"

STUB int cusolverGetVersion(int *version) { *version = STUB_MAJOR * 1000 + STUB_MINOR * 100 + STUB_PATCH; return 0; }
STUB int cusolverGetProperty(int which, int *value) {
  *value = which == 0 ? STUB_MAJOR : which == 1 ? STUB_MINOR : STUB_PATCH;
  return 0;
}
