#include "stub.h"

STUB int cusparseGetVersion(void *handle, int *version) {
  (void)handle;
  *version = STUB_MAJOR * 1000 + STUB_MINOR * 100 + STUB_PATCH;
  return 0;
}
STUB int cusparseGetProperty(int which, int *value) {
  *value = which == 0 ? STUB_MAJOR : which == 1 ? STUB_MINOR : STUB_PATCH;
  return 0;
}
STUB const char *cusparseGetErrorString(int status) { return status ? "null cuSPARSE error" : "null cuSPARSE success"; }
STUB const char *cusparseGetErrorName(int status) { return status ? "NULL_CUSPARSE_ERROR" : "NULL_CUSPARSE_SUCCESS"; }
