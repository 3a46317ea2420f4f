#define _GNU_SOURCE
/* As the collector does (deduce_unreachable, CPython's Modules/gcmodule.c, from 3.13 on Python/gc.c), but among what
 * the references lead to: these and the references among the objects are subtracted from the objects' counts. Where
 * some are left, something else refers to the object, and it and all that it reaches stay. The rest ends. */
#include "adapters/pyfreed.h"

#include <errno.h>

#include "adapters/pyobject.h"
#include "adapters/pysearch.h"
#include "base/sys.h"
#include "python/interpreter.h"

#define MT_OBJECTS (1u << 20) /* most that are looked at */
#define MT_SLOTS (2 * MT_OBJECTS)

static const struct mt_pysearch_api *const api = &mt_pysearch;

struct candidate {
  void *object;
  uint32_t group; /* that it was last reached for, from 1 */
  int32_t own;    /* references of the search's */
  int32_t left;   /* references that nothing of the group accounts for */
  bool kept, stays;
};

/* One at a time, with the interpreter's lock. */
static struct {
  struct candidate *all;
  uint32_t *slots; /* number of a candidate + 1 */
  uint32_t *queue; /* numbers of the group's */
  uint32_t *staying;
  uint32_t count, group, end, stay;
  struct mt_pybound bound;
  void *holder, *type;
} now;

static uint32_t *slot_of(const void *object) {
  return mt_pysearch_slot(now.slots, MT_SLOTS, now.all, sizeof *now.all, object);
}

static struct candidate *known(const void *object) {
  uint32_t *slot = slot_of(object);
  return *slot ? &now.all[*slot - 1] : NULL;
}

/* NULL if there is no more room. */
static struct candidate *candidate(void *object) {
  uint32_t *slot = slot_of(object);
  if (*slot) return &now.all[*slot - 1];
  if (now.count == MT_OBJECTS) return now.bound.exhausted = true, NULL;
  now.all[now.count] = (struct candidate){.object = object};
  *slot = ++now.count;
  return &now.all[now.count - 1];
}

static int count_own(void *child, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return 1;
  struct candidate *c = mt_pyobject_is_collected(child) ? candidate(child) : NULL;
  if (c) c->own++;
  return 0;
}

/* NULL where an object is kept, or there is no room. */
static struct candidate *enter(void *object) {
  if (object == now.holder || !mt_pyobject_is_collected(object) || mt_pyobject_is_type(object)) return NULL;
  struct candidate *c = candidate(object);
  if (!c || c->kept) return NULL;
  if (c->group != now.group) {
    c->group = now.group, c->stays = false, c->left = mt_pyobject_references(object) - c->own;
    now.queue[now.end++] = (uint32_t)(c - now.all);
  }
  return c;
}

static int subtract_given(void *child, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return 1;
  struct candidate *c = known(child);
  if (c && c->group == now.group) c->left--;
  return 0;
}

static int subtract_reached(void *child, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return 1;
  struct candidate *c = enter(child);
  if (c) c->left--;
  return 0;
}

static void stay(struct candidate *c) {
  if (c->stays) return;
  c->stays = true;
  now.staying[now.stay++] = (uint32_t)(c - now.all);
}

static int propagate(void *child, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return 1;
  struct candidate *c = child == now.holder ? NULL : known(child);
  if (c && c->group == now.group) stay(c);
  return 0;
}

/* C++ code may refer to an object of the type. */
static bool is_doubtful(const struct candidate *c) {
  return c->left == 1 && api->is_subtype(mt_pyapi_type_of(c->object), now.type);
}

static void decide(void *group) {
  unsigned long long number = api->from_number(api->list_item(group, 1));
  now.end = now.stay = 0;
  intptr_t count = api->length(group);
  for (intptr_t i = 2; i < count; i++) enter(api->list_item(group, i));
  uint32_t given = now.end;
  if (now.holder && number) mt_pyobject_traverse(now.holder, subtract_given);
  for (uint32_t i = 0; i < given; i++) {
    struct candidate *c = &now.all[now.queue[i]];
    if (!now.holder) c->left = (int32_t)number; /* those of functions that run, and of their stacks, end */
    else if (!number) c->left--;
  }
  for (uint32_t i = 0; i < now.end && !now.bound.exhausted; i++)
    mt_pyobject_traverse(now.all[now.queue[i]].object, subtract_reached);
  for (uint32_t i = 0; i < now.end; i++) {
    struct candidate *c = &now.all[now.queue[i]];
    if (c->left > 0 && !is_doubtful(c)) stay(c);
  }
  for (uint32_t i = 0; i < now.stay && !now.bound.exhausted; i++)
    mt_pyobject_traverse(now.all[now.staying[i]].object, propagate);
}

/* The pair of lists; None where the group was not decided. */
static void append_ended(void *list) {
  void *ended = api->list(0), *doubtful = api->list(0);
  for (uint32_t i = 0; ended && doubtful && i < now.end; i++) {
    struct candidate *c = &now.all[now.queue[i]];
    if (!c->stays && api->is_subtype(mt_pyapi_type_of(c->object), now.type))
      mt_pysearch_append(c->left > 0 ? doubtful : ended, api->number((uintptr_t)c->object));
  }
  if (ended && doubtful) mt_pysearch_append(list, api->pack(2, ended, doubtful));
  if (ended) api->decref(ended);
  if (doubtful) api->decref(doubtful);
}

static void mark_kept(void *list) {
  for (intptr_t i = 0, count = api->length(list); i < count; i++) {
    void *object = api->list_item(list, i);
    struct candidate *c = mt_pyobject_is_collected(object) ? candidate(object) : NULL;
    if (c) c->kept = true;
  }
}

/* The search's own references are counted before any object is created for the result. */
static void *search(void *groups, void *own, void *kept) {
  intptr_t count = api->length(groups);
  mt_pyobject_traverse(kept, count_own);
  for (intptr_t i = 0; i < count; i++) mt_pyobject_traverse(api->list_item(groups, i), count_own);
  for (intptr_t i = 0, size = api->length(own); i < size; i++)
    mt_pyobject_traverse(api->list_item(own, i), count_own);
  mark_kept(kept);
  void *list = api->list(0);
  for (intptr_t i = 0; list && i < count; i++) {
    void *group = api->list_item(groups, i), *holder = api->list_item(group, 0);
    now.group = (uint32_t)i + 1, now.holder = holder == mt_pysearch_none ? NULL : holder;
    if (!now.bound.exhausted) decide(group);
    if (now.bound.exhausted) api->append(list, mt_pysearch_none);
    else append_ended(list);
  }
  return list;
}

void *mt_pyfreed(void *self, void *arguments) {
  (void)self;
  int error = errno;
  const size_t all = MT_OBJECTS * sizeof *now.all, slots = MT_SLOTS * sizeof *now.slots,
               queue = MT_OBJECTS * sizeof *now.queue, size = all + slots + 2 * queue;
  void *given[6], *found = NULL;
  bool possible = !mt_interpreter.layout.free_threaded && !now.all;
  for (int i = 0; possible && i < 6; i++) possible = (given[i] = api->item(arguments, i)) != NULL;
  char *room = possible ? mt_sys_pages_alloc(size) : NULL;
  if (room) {
    now.all = (struct candidate *)room, now.slots = (uint32_t *)(room + all);
    now.queue = (uint32_t *)(room + all + slots), now.staying = (uint32_t *)(room + all + slots + queue);
    now.count = 0, now.type = given[5];
    now.bound = mt_pybound_of(api->from_number(given[3]), api->from_number(given[4]));
    found = search(given[0], given[1], given[2]);
    mt_sys_pages_free(room, size);
    now.all = NULL;
  }
  api->clear_error();
  if (!found) api->incref(found = mt_pysearch_none);
  errno = error;
  return found;
}
