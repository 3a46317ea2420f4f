#define _GNU_SOURCE
#include "adapters/pygc.h"

#include <stdint.h>
#include <string.h>

#include "python/interpreter.h"
#include "python/pyapi.h"

/* To 3.11 tracked objects are in three circular lists, one for each generation, each with a head of its own (CPython,
 * struct gc_generation). An object's links are right before it, with flags in the lowest bits (PyGC_Head).
 *
 *   generations   head of the youngest: next, previous | threshold, count    24 bytes; the other two follow */
struct link {
  uintptr_t next, previous;
};
struct generation {
  struct link head;
  int32_t threshold, count;
};
_Static_assert(sizeof(struct generation) == 24, "as the interpreter has it");

enum { GENERATIONS = 3, NEWEST = 11 /* 3.11 */ };

#define LINK(word) ((struct link *)((word) & ~(uintptr_t)3))

#define API(F)                                                                     \
  F(void, visit, (int (*)(void *, void *), void *), "?PyUnstable_GC_VisitObjects") \
  F(void *, list, (intptr_t), "PyList_New")                                        \
  F(void *, modules, (void), "PyImport_GetModuleDict") /* borrowed */              \
  F(void *, item, (void *, const char *), "PyDict_GetItemString") /* borrowed */   \
  F(void *, attribute, (void *, const char *), "PyObject_GetAttrString")           \
  F(void *, call, (void *, ...), "PyObject_CallFunctionObjArgs")                   \
  F(void *, tuple_item, (void *, intptr_t), "PyTuple_GetItem") /* borrowed */      \
  F(long, number, (void *), "PyLong_AsLong")                                       \
  F(void, clear_error, (void), "PyErr_Clear")                                      \
  F(void, decref, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;

bool mt_pygc_find(void) { return mt_pyapi_find(MT_PYAPI_NAMES(API), &api); }

/* gc.get_threshold(), which must be in the generations' heads. */
static bool are_thresholds(const struct generation *generations) {
  void *modules = api.modules(), *gc = modules ? api.item(modules, "gc") : NULL,
       *ask = gc ? api.attribute(gc, "get_threshold") : NULL;
  void *thresholds = ask ? api.call(ask, NULL) : NULL;
  bool same = thresholds != NULL;
  for (int i = 0; same && i < GENERATIONS; i++) {
    void *number = api.tuple_item(thresholds, i);
    same = number && api.number(number) == generations[i].threshold;
  }
  if (thresholds) api.decref(thresholds);
  if (ask) api.decref(ask);
  api.clear_error();
  return same;
}

/* The newest object is the last one of the youngest generation. */
static struct generation *find_generations(void) {
  void *newest = api.list(0);
  if (!newest) return api.clear_error(), NULL;
  struct link *own = (struct link *)newest - 1;
  struct generation *found = own->next & 3 || !own->next ? NULL : (struct generation *)own->next;
  if (found && LINK(found->head.previous) != own) found = NULL;
  api.decref(newest);
  return found && are_thresholds(found) ? found : NULL;
}

static bool walk(struct generation *generation, bool (*each)(void *, void *), void *context) {
  struct link *head = &generation->head, *at = LINK(head->next), *before = head;
  for (; at != head; before = at, at = LINK(at->next)) {
    if (LINK(at->previous) != before) return false;
    if (!each(at + 1, context)) return true;
  }
  return LINK(head->previous) == before;
}

struct visit {
  bool (*each)(void *, void *);
  void *context;
};

static int visit(void *object, void *argument) {
  struct visit *v = argument;
  return v->each(object, v->context);
}

/* Without the lock, the collector holds all threads meanwhile, one of which may hold what the caller needs. */
bool mt_pygc_visit(bool (*each)(void *, void *), void *context) {
  if (mt_interpreter.layout.free_threaded) return false;
  if (api.visit) return api.visit(visit, &(struct visit){each, context}), true;
  struct generation *generations = mt_interpreter.layout.minor <= NEWEST ? find_generations() : NULL;
  for (int i = 0; generations && i < GENERATIONS; i++)
    if (!walk(&generations[i], each, context)) return false;
  return generations;
}
