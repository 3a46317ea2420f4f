/* Functions of Python's C API that the library calls, found by name. A table's names are one string: an array of
 * pointers would need a relocation each in every process at its start.
 *
 *   #define API(F) F(int, initialized, (void), "Py_IsInitialized") F(void *, dict, (void), "PyDict_New")
 *   static struct { MT_PYAPI_PLACES(API) } api;
 *   mt_pyapi_find(MT_PYAPI_NAMES(API), &api) */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "python/interpreter.h"

#define MT_PYAPI_PLACE(type, name, parameters, symbol) type(*name) parameters;
#define MT_PYAPI_NAME(type, name, parameters, symbol) symbol "\0"
#define MT_PYAPI_PLACES(list) list(MT_PYAPI_PLACE)
#define MT_PYAPI_NAMES(list) list(MT_PYAPI_NAME)

/* Resolves the functions of these names into places, one pointer after the other: each name ends in a zero, the last
 * one in two. "?" before a name marks it as optional, and its place is NULL if it is missing. False if another one is
 * missing. Once an interpreter was found. */
bool mt_pyapi_find(const char *names, void *places);

/* PyMethodDef (CPython, Include/methodobject.h). */
struct mt_pymethod {
  const char *name;
  void *function;
  int flags;
  const char *text;
};

/* Its flags: METH_VARARGS, METH_VARARGS | METH_KEYWORDS, METH_NOARGS, METH_O (CPython, Include/methodobject.h). */
enum { MT_PY_SEVERAL_ARGUMENTS = 1, MT_PY_WITH_KEYWORDS = 3, MT_PY_NO_ARGUMENTS = 4, MT_PY_ONE_ARGUMENT = 8 };

/* An object's type; runs nothing of the object's. */
static inline void *mt_pyapi_type_of(const void *object) {
  void *type;
  memcpy(&type, (const char *)object + mt_interpreter.layout.object_type, sizeof type);
  return type;
}
