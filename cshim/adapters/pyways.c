#define _GNU_SOURCE
/* First from the roots, breadth first: the list of objects that were met is the queue, and each knows from where it was
 * met first. What the collector knows and was not met there is tried as the collector tries it: of each object's
 * references those of the others among them are taken away, and where some are left, something else holds it and all
 * behind it. The rest is garbage. */
#include "adapters/pyways.h"

#include <errno.h>
#include <string.h>

#include "adapters/pygc.h"
#include "base/clock.h"
#include "base/sys.h"
#include "python/interpreter.h"
#include "python/pyapi.h"

#define MT_OBJECTS (1u << 22) /* most that are met */
#define MT_SLOTS (2 * MT_OBJECTS)
#define MT_STEPS 48u /* of a way */
#define MT_CIRCLE 6u  /* of a way to garbage, which has no beginning */
#define MT_LOOK 4096u /* visits between two looks at the clock */
#define MT_NOWHERE UINT32_MAX

/* Of PyTypeObject, whose beginning is the same in 3.8 to 3.14. */
#define MT_TYPE_FLAGS 168u
#define MT_TYPE_TRAVERSE 184u
#define MT_TYPE_IS_GC 328u
#define MT_HAVE_GC (1ul << 14)

typedef int (*visitor)(void *, void *);

#define API(F)                                                              \
  F(void *, list, (intptr_t), "PyList_New")                                 \
  F(int, append, (void *, void *), "PyList_Append")                         \
  F(intptr_t, length, (void *), "PyList_Size")                              \
  F(void *, list_item, (void *, intptr_t), "PyList_GetItem") /* borrowed */ \
  F(void *, item, (void *, intptr_t), "PyTuple_GetItem") /* borrowed */     \
  F(void *, pack, (intptr_t, ...), "PyTuple_Pack")                          \
  F(void *, number, (unsigned long long), "PyLong_FromUnsignedLongLong")    \
  F(unsigned long long, from_number, (void *), "PyLong_AsUnsignedLongLong") \
  F(void, clear_error, (void), "PyErr_Clear")                               \
  F(void, take, (void *), "Py_IncRef")                                      \
  F(void, give, (void *), "Py_DecRef")

static struct {
  MT_PYAPI_PLACES(API)
} api;
static void *none;

bool mt_pyways_find(void) {
  none = (void *)mt_interpreter_variable("_Py_NoneStruct");
  return none && mt_pyapi_find(MT_PYAPI_NAMES(API), &api) && mt_pygc_find();
}

struct met {
  void *object;
  uint32_t from; /* MT_NOWHERE: a beginning */
  int32_t left;  /* references that no object accounts for; of those beyond the roots */
  uint32_t how;  /* enum mt_pyway */
};

struct way {
  enum mt_pyway how;
  uint32_t count;
  void *objects[MT_STEPS];
};

/* One at a time, with the interpreter's lock. */
static struct {
  struct met *met;
  uint32_t *slots; /* number of an object + 1 */
  uint32_t *queue; /* numbers of those that something holds */
  uint32_t count, at, end;
  uint64_t visits, most, until;
  bool over;
  void *own[2]; /* lists of ours, which keep nothing */
} now;

static uint64_t word(const void *object, unsigned offset) {
  uint64_t found;
  memcpy(&found, (const char *)object + offset, sizeof found);
  return found;
}

static bool is_collected(void *object) {
  void *type = mt_pyapi_type_of(object);
  if (!(word(type, MT_TYPE_FLAGS) & MT_HAVE_GC)) return false;
  int (*ask)(void *) = (int (*)(void *))word(type, MT_TYPE_IS_GC);
  return !ask || ask(object);
}

static uint32_t *slot_of(const void *object) {
  uint64_t hash = (uintptr_t)object * 0x9e3779b97f4a7c15ull >> 20;
  for (;; hash++) {
    uint32_t *slot = &now.slots[hash % MT_SLOTS];
    if (!*slot || now.met[*slot - 1].object == object) return slot;
  }
}

/* Whether it was not met before. */
static bool meet(void *object, uint32_t from, enum mt_pyway how) {
  if (object == now.own[0] || object == now.own[1]) return false;
  uint32_t *slot = slot_of(object);
  if (*slot) return false;
  if (now.count == MT_OBJECTS) return now.over = true, false;
  now.met[now.count] = (struct met){.object = object, .from = from, .how = how};
  *slot = ++now.count;
  return true;
}

static bool is_over(void) {
  if (now.over) return true;
  now.over = now.visits >= now.most || (now.visits % MT_LOOK == 0 && mt_clock_monotonic() > now.until);
  if (!now.over) now.visits++;
  return now.over;
}

/* Visits what an object refers to until a visitor's answer is not 0. */
static void traverse(void *object, visitor visit) {
  int (*run)(void *, visitor, void *) =
      (int (*)(void *, visitor, void *))word(mt_pyapi_type_of(object), MT_TYPE_TRAVERSE);
  if (run && is_collected(object)) run(object, visit, NULL);
}

static int reach(void *child, void *unused) {
  (void)unused;
  if (is_over()) return 1;
  if (is_collected(child)) meet(child, now.at, MT_WAY_NAMED);
  return 0;
}

static void walk_on(void) {
  for (; now.at < now.count && !now.over; now.at++) traverse(now.met[now.at].object, reach);
}

static void walk_from_roots(void *roots) {
  now.at = 0;
  for (intptr_t i = 0, count = api.length(roots); i < count; i++) {
    void *root = api.list_item(roots, i);
    if (root == none) walk_on();
    else if (is_collected(root)) meet(root, MT_NOWHERE, MT_WAY_NAMED);
  }
  walk_on();
}

/* The lower half is the count in every version; it is beyond all others in objects that never go. */
static int32_t references(const void *object) {
  uint32_t count;
  memcpy(&count, object, sizeof count);
  return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

static bool add_rest(void *object, void *unused) {
  (void)unused;
  if (is_over()) return false;
  meet(object, MT_NOWHERE, MT_WAY_GARBAGE);
  return true;
}

static struct met *met(const void *object) {
  uint32_t *slot = slot_of(object);
  return *slot ? &now.met[*slot - 1] : NULL;
}

static int take_away(void *child, void *unused) {
  (void)unused;
  if (is_over()) return 1;
  struct met *m = met(child);
  if (m) m->left--;
  return 0;
}

static void hold(struct met *m, uint32_t from) {
  m->how = MT_WAY_FOREIGN, m->from = from;
  now.queue[now.end++] = (uint32_t)(m - now.met);
}

static int keep(void *child, void *unused) {
  (void)unused;
  if (is_over()) return 1;
  struct met *m = met(child);
  if (m && m->how == MT_WAY_GARBAGE) hold(m, now.at);
  return 0;
}

static int name_garbage(void *child, void *unused) {
  (void)unused;
  if (is_over()) return 1;
  struct met *m = met(child);
  if (m && m->how == MT_WAY_GARBAGE && m->from == MT_NOWHERE && child != now.met[now.at].object) m->from = now.at;
  return 0;
}

/* Breadth first again, through those that something holds. */
static void keep_what_is_held(uint32_t first) {
  for (uint32_t i = first; i < now.count; i++)
    if (now.met[i].left > 0) hold(&now.met[i], MT_NOWHERE);
  for (uint32_t next = 0; next < now.end && !now.over; next++) {
    now.at = now.queue[next];
    traverse(now.met[now.at].object, keep);
  }
}

/* False if the collector's objects cannot be had. */
static bool try_rest(void) {
  uint32_t first = now.count;
  if (!mt_pygc_visit(add_rest, NULL)) return false;
  for (uint32_t i = first; i < now.count; i++) /* not while they are visited: from 3.12 on each is held then */
    now.met[i].left = references(now.met[i].object);
  for (now.at = first; now.at < now.count && !now.over; now.at++) traverse(now.met[now.at].object, take_away);
  for (int i = 0; i < 2; i++) traverse(now.own[i], take_away);
  keep_what_is_held(first);
  for (now.at = first; now.at < now.count && !now.over; now.at++)
    if (now.met[now.at].how == MT_WAY_GARBAGE) traverse(now.met[now.at].object, name_garbage);
  return true;
}

/* The objects on the way to one, itself last; new references. How many. */
static uint32_t way_to(void *object, enum mt_pyway *how, void **way) {
  struct met *m = met(object);
  uint32_t count = 0;
  *how = m && (m->how == MT_WAY_NAMED || !now.over) ? (enum mt_pyway)m->how : MT_WAY_UNKNOWN;
  for (uint32_t steps = 0; m && *how != MT_WAY_UNKNOWN && steps < MT_STEPS; steps++) {
    way[count++] = m->object;
    api.take(m->object);
    if (m->from == MT_NOWHERE || (*how == MT_WAY_GARBAGE && count == MT_CIRCLE)) break;
    m = &now.met[m->from];
  }
  return count;
}

static void *list_of(enum mt_pyway how, void **way, uint32_t count) {
  void *list = api.list(0), *number = api.number(how);
  if (list && number) api.append(list, number);
  if (number) api.give(number);
  while (count--) {
    if (list) api.append(list, way[count]);
    api.give(way[count]);
  }
  return list;
}

/* What runs when objects are made may end some of the program's, so the ways are made in the end, of references. */
static void *answer(void *wanted) {
  intptr_t count = api.length(wanted);
  size_t size = (size_t)count * sizeof(struct way);
  struct way *ways = count ? mt_sys_pages_alloc(size) : NULL;
  void *list = NULL;
  for (intptr_t i = 0; ways && i < count; i++)
    ways[i].count = way_to(api.list_item(wanted, i), &ways[i].how, ways[i].objects);
  if (ways || !count) list = api.list(0);
  for (intptr_t i = 0; ways && i < count; i++) {
    void *way = list_of(ways[i].how, ways[i].objects, ways[i].count);
    if (way && list) api.append(list, way);
    if (way) api.give(way);
  }
  if (ways) mt_sys_pages_free(ways, size);
  return list;
}

static void *search(void *wanted, void *roots) {
  now.own[0] = wanted, now.own[1] = roots;
  now.count = now.end = 0, now.visits = 0, now.over = false;
  walk_from_roots(roots);
  if (!now.over && !try_rest()) return NULL;
  void *ways = answer(wanted), *visits = api.number(now.visits), *both = NULL;
  if (ways && visits) both = api.pack(2, ways, visits);
  if (ways) api.give(ways);
  if (visits) api.give(visits);
  return both;
}

void *mt_pyways(void *self, void *arguments) {
  (void)self;
  int error = errno;
  const size_t met_size = MT_OBJECTS * sizeof *now.met, slots_size = MT_SLOTS * sizeof *now.slots,
               queue_size = MT_OBJECTS * sizeof *now.queue;
  void *wanted = api.item(arguments, 0), *roots = wanted ? api.item(arguments, 1) : NULL,
       *visits = roots ? api.item(arguments, 2) : NULL, *milliseconds = visits ? api.item(arguments, 3) : NULL,
       *found = NULL;
  bool possible = milliseconds && !mt_interpreter.layout.threaded && !now.met;
  char *room = possible ? mt_sys_pages_alloc(met_size + slots_size + queue_size) : NULL;
  if (room) {
    now.met = (struct met *)room;
    now.slots = (uint32_t *)(room + met_size), now.queue = (uint32_t *)(room + met_size + slots_size);
    now.most = api.from_number(visits);
    now.until = mt_clock_monotonic() + api.from_number(milliseconds) * 1000000ull;
    found = search(wanted, roots);
    mt_sys_pages_free(room, met_size + slots_size + queue_size);
    now.met = NULL;
  }
  api.clear_error();
  if (!found) api.take(found = none);
  errno = error;
  return found;
}
