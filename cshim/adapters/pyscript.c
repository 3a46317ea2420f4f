#define _GNU_SOURCE
#include "adapters/pyscript.h"

#define MT_PY_FILE_INPUT 257

static const char file[] = "<memtrace>";

#define API(F)                                                                     \
  F(void *, builtins, (void), "PyEval_GetBuiltins") /* borrowed */                 \
  F(void *, compile, (const char *, const char *, int), "Py_CompileString")        \
  F(void *, run, (void *, void *, void *), "PyEval_EvalCode")                      \
  F(void *, dict, (void), "PyDict_New")                                            \
  F(int, set, (void *, const char *, void *), "PyDict_SetItemString")              \
  F(void *, text, (const char *), "PyUnicode_FromString")                          \
  F(void *, function, (struct mt_pymethod *, void *, void *), "PyCFunction_NewEx") \
  F(void *, number, (unsigned long long), "PyLong_FromUnsignedLongLong")           \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;

bool mt_pyscript_find(void) { return mt_pyapi_find(MT_PYAPI_NAMES(API), &api); }

/* Takes the reference, which may be NULL: then it fails. */
static bool add(void *namespace, const char *name, void *object) {
  bool added = object && !api.set(namespace, name, object);
  if (object) api.decref(object);
  return added;
}

void *mt_pyscript_namespace(void) {
  void *namespace = api.dict(), *builtins = api.builtins();
  if (!namespace) return NULL;
  if (builtins && !api.set(namespace, "__builtins__", builtins) && add(namespace, "__name__", api.text("memtrace")) &&
      add(namespace, "__file__", api.text(file)))
    return namespace;
  api.decref(namespace);
  return NULL;
}

bool mt_pyscript_add_function(void *namespace, struct mt_pymethod *method, void *self) {
  return add(namespace, method->name, api.function(method, self, NULL));
}

bool mt_pyscript_add_number(void *namespace, const char *name, uint64_t number) {
  return add(namespace, name, api.number(number));
}

bool mt_pyscript_run(void *namespace, const char *text) {
  void *code = api.compile(text, file, MT_PY_FILE_INPUT);
  void *result = code ? api.run(code, namespace, namespace) : NULL;
  if (result) api.decref(result);
  if (code) api.decref(code);
  return result != NULL;
}
