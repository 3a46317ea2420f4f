#define _GNU_SOURCE
#include "adapters/pysearch.h"

#include "python/interpreter.h"

struct mt_pysearch_api mt_pysearch;
void *mt_pysearch_none;

bool mt_pysearch_find(void) {
  mt_pysearch_none = (void *)mt_interpreter_variable("_Py_NoneStruct");
  return mt_pysearch_none && mt_pyapi_find(MT_PYAPI_NAMES(MT_PYSEARCH_API), &mt_pysearch);
}

void mt_pysearch_append(void *list, void *item) {
  if (list && item) mt_pysearch.append(list, item);
  if (item) mt_pysearch.decref(item);
}
