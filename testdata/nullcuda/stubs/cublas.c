#include "stub.h"

STUB int cublasCreate_v2(void **handle) { *handle = stub_handle(); return 0; }
STUB int cublasGetVersion_v2(void *handle, int *version) {
  (void)handle;
  *version = STUB_MAJOR * 10000 + STUB_MINOR * 100 + STUB_PATCH;
  return 0;
}
STUB int cublasGetProperty(int which, int *value) {
  *value = which == 0 ? STUB_MAJOR : which == 1 ? STUB_MINOR : STUB_PATCH;
  return 0;
}
STUB int cublasGetPointerMode_v2(void *handle, int *mode) { (void)handle; *mode = 0; return 0; }
STUB int cublasGetMathMode(void *handle, int *mode) { (void)handle; *mode = 0; return 0; }
STUB int cublasGetStream_v2(void *handle, void **stream) { (void)handle; *stream = NULL; return 0; }
STUB const char *cublasGetStatusString(int status) { return status ? "null cuBLAS error" : "null cuBLAS success"; }
