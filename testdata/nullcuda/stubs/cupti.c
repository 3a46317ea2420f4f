#include "stub.h"

// No record is ever delivered.
enum { MAX_LIMIT_REACHED = 12 };
STUB int cuptiGetVersion(unsigned *version) { *version = STUB_MAJOR >= 13 ? 130200 : 26; return 0; }
STUB int cuptiGetResultString(int result, const char **text) {
  *text = result ? "null CUPTI error" : "null CUPTI success";
  return 0;
}
STUB int cuptiGetCallbackName(int domain, unsigned id, const char **name) {
  (void)domain, (void)id;
  *name = "null";
  return 0;
}
STUB int cuptiSubscribe(void **subscriber) { *subscriber = stub_handle(); return 0; }
STUB int cuptiActivityGetNextRecord(void *buffer, size_t valid, void **record) {
  (void)buffer, (void)valid;
  *record = NULL;
  return MAX_LIMIT_REACHED;
}
STUB int cuptiActivityGetNumDroppedRecords(void *context, unsigned stream, size_t *dropped) {
  (void)context, (void)stream;
  *dropped = 0;
  return 0;
}
