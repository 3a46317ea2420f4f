#include "stub.h"

STUB int curandGetVersion(int *version) { *version = STUB_MAJOR * 1000 + STUB_MINOR * 100 + STUB_PATCH; return 0; }
