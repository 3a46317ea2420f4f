#define _GNU_SOURCE
/* First a breadth-first search from the roots: the list of visited objects is the queue, and each has the one from
 * which it was first reached. Tracked objects that were not reached are classified as the collector does
 * (deduce_unreachable, CPython's Modules/gcmodule.c, from 3.13 on Python/gc.c): references among them are subtracted
 * from their counts, and where some are left, the object and all that it reaches are held by something else. The rest
 * is garbage. */
#include "adapters/pypaths.h"

#include <errno.h>
#include <string.h>

#include "adapters/pygc.h"
#include "adapters/pyobject.h"
#include "adapters/pysearch.h"
#include "base/sys.h"
#include "python/interpreter.h"
#include "python/pyapi.h"

#define MT_OBJECTS (1u << 22) /* most that are visited */
#define MT_SLOTS (2 * MT_OBJECTS)
#define MT_STEPS 48u /* of a way */
#define MT_CYCLE 6u  /* of a way to garbage, which has no beginning */
#define MT_NOWHERE UINT32_MAX

static const struct mt_pysearch_api *const api = &mt_pysearch;

bool mt_pypaths_find(void) { return mt_pysearch_find() && mt_pygc_find(); }

struct visited {
  void *object;
  uint32_t from; /* MT_NOWHERE: a beginning */
  int32_t left;  /* references that no object accounts for, of those beyond the roots; of others: not followed yet */
  uint32_t kind;  /* enum mt_pypath_kind */
  uint32_t referred; /* how many references from objects with a name were followed to it */
};

struct path {
  enum mt_pypath_kind kind;
  uint32_t referred, count;
  void *objects[MT_STEPS];
};

/* One at a time, with the interpreter's lock. */
static struct {
  struct visited *visited;
  uint32_t *slots; /* number of an object + 1 */
  uint32_t *queue; /* numbers of those that something holds */
  uint32_t count, at, end;
  struct mt_pybound bound;
  void *own[2]; /* the search's own lists, which keep nothing alive */
  void *last;   /* a type whose objects are followed when nothing else is left, or NULL */
} now;

static uint32_t *slot_of(const void *object) {
  return mt_pysearch_slot(now.slots, MT_SLOTS, now.visited, sizeof *now.visited, object);
}

static struct visited *visited(const void *object) {
  uint32_t *slot = slot_of(object);
  return *slot ? &now.visited[*slot - 1] : NULL;
}

/* True if it is new. */
static bool add_object(void *object, uint32_t from, enum mt_pypath_kind kind) {
  if (object == now.own[0] || object == now.own[1]) return false;
  uint32_t *slot = slot_of(object);
  if (*slot) return false;
  if (now.count == MT_OBJECTS) return now.bound.exhausted = true, false;
  now.visited[now.count] = (struct visited){.object = object, .from = from, .kind = kind};
  *slot = ++now.count;
  return true;
}

static int visit_child(void *child, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return 1;
  if (!mt_pyobject_is_collected(child)) return 0;
  struct visited *m = visited(child);
  if (!m && add_object(child, now.at, MT_PATH_NAMED)) m = &now.visited[now.count - 1];
  if (m) m->referred++;
  return 0;
}

/* First all but what objects of the last type refer to, then that. */
static void drain_queue(void) {
  uint32_t first = now.at;
  bool deferred = false;
  for (; now.at < now.count && !now.bound.exhausted; now.at++) {
    struct visited *m = &now.visited[now.at];
    m->left = now.last && api->is_subtype(mt_pyapi_type_of(m->object), now.last);
    deferred |= m->left;
    if (!m->left) mt_pyobject_traverse(m->object, visit_child);
  }
  uint32_t end = now.at;
  for (now.at = first; deferred && now.at < end && !now.bound.exhausted; now.at++)
    if (now.visited[now.at].left) mt_pyobject_traverse(now.visited[now.at].object, visit_child);
  for (now.at = end; now.at < now.count && !now.bound.exhausted; now.at++)
    mt_pyobject_traverse(now.visited[now.at].object, visit_child);
}

static void walk_from_roots(void *roots) {
  now.at = 0;
  for (intptr_t i = 0, count = api->length(roots); i < count; i++) {
    void *root = api->list_item(roots, i);
    if (root == mt_pysearch_none) drain_queue();
    else if (mt_pyobject_is_collected(root)) add_object(root, MT_NOWHERE, MT_PATH_NAMED);
  }
  drain_queue();
}

static bool add_unreached(void *object, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return false;
  add_object(object, MT_NOWHERE, MT_PATH_GARBAGE);
  return true;
}

static int subtract_reference(void *child, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return 1;
  struct visited *m = visited(child);
  if (m) m->left--;
  return 0;
}

static void mark_reachable(struct visited *m, uint32_t from) {
  m->kind = MT_PATH_FOREIGN, m->from = from;
  now.queue[now.end++] = (uint32_t)(m - now.visited);
}

static int propagate(void *child, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return 1;
  struct visited *m = visited(child);
  if (m && m->kind == MT_PATH_GARBAGE) mark_reachable(m, now.at);
  return 0;
}

static int link_garbage(void *child, void *unused) {
  (void)unused;
  if (mt_pybound_is_over(&now.bound)) return 1;
  struct visited *m = visited(child);
  if (m && m->kind == MT_PATH_GARBAGE && m->from == MT_NOWHERE && child != now.visited[now.at].object) m->from = now.at;
  return 0;
}

/* Breadth first again, through those that something holds. */
static void propagate_reachable(uint32_t first) {
  for (uint32_t i = first; i < now.count; i++)
    if (now.visited[i].left > 0) mark_reachable(&now.visited[i], MT_NOWHERE);
  for (uint32_t next = 0; next < now.end && !now.bound.exhausted; next++) {
    now.at = now.queue[next];
    mt_pyobject_traverse(now.visited[now.at].object, propagate);
  }
}

/* False if the tracked objects cannot be visited. */
static bool classify_rest(void) {
  uint32_t first = now.count;
  if (!mt_pygc_visit(add_unreached, NULL)) return false;
  for (uint32_t i = first; i < now.count; i++) /* not while they are visited: from 3.12 on each is held then */
    now.visited[i].left = mt_pyobject_references(now.visited[i].object);
  for (now.at = first; now.at < now.count && !now.bound.exhausted; now.at++)
    mt_pyobject_traverse(now.visited[now.at].object, subtract_reference);
  for (int i = 0; i < 2; i++) mt_pyobject_traverse(now.own[i], subtract_reference);
  propagate_reachable(first);
  for (now.at = first; now.at < now.count && !now.bound.exhausted; now.at++)
    if (now.visited[now.at].kind == MT_PATH_GARBAGE) mt_pyobject_traverse(now.visited[now.at].object, link_garbage);
  return true;
}

/* The objects on the way to one, itself first; new references. */
static void find_path(void *object, struct path *path) {
  struct visited *m = visited(object);
  path->kind = m && (m->kind == MT_PATH_NAMED || !now.bound.exhausted) ? (enum mt_pypath_kind)m->kind : MT_PATH_UNKNOWN;
  path->referred = m ? m->referred : 0;
  for (uint32_t steps = 0; m && path->kind != MT_PATH_UNKNOWN && steps < MT_STEPS; steps++) {
    path->objects[path->count++] = m->object;
    api->incref(m->object);
    if (m->from == MT_NOWHERE || (path->kind == MT_PATH_GARBAGE && path->count == MT_CYCLE)) break;
    m = &now.visited[m->from];
  }
}

static void *list_of(struct path *path) {
  void *list = api->list(0);
  mt_pysearch_append(list, api->number(path->kind));
  mt_pysearch_append(list, api->number(path->referred));
  while (path->count--) mt_pysearch_append(list, path->objects[path->count]);
  return list;
}

/* Creating objects may run a collection, and that code of the program's which frees some; so the result is created at
 * the end, from references. */
static void *collect_paths(void *wanted) {
  intptr_t count = api->length(wanted);
  size_t size = (size_t)count * sizeof(struct path);
  struct path *paths = count ? mt_sys_pages_alloc(size) : NULL;
  void *list = NULL;
  for (intptr_t i = 0; paths && i < count; i++)
    find_path(api->list_item(wanted, i), &paths[i]);
  if (paths || !count) list = api->list(0);
  for (intptr_t i = 0; paths && i < count; i++) mt_pysearch_append(list, list_of(&paths[i]));
  if (paths) mt_sys_pages_free(paths, size);
  return list;
}

static void *search(void *wanted, void *roots, void *last) {
  now.own[0] = wanted, now.own[1] = roots, now.last = last == mt_pysearch_none ? NULL : last;
  now.count = now.end = 0;
  walk_from_roots(roots);
  if (!now.bound.exhausted && !classify_rest()) return NULL;
  void *paths = collect_paths(wanted), *visits = api->number(now.bound.visits), *both = NULL;
  if (paths && visits) both = api->pack(2, paths, visits);
  if (paths) api->decref(paths);
  if (visits) api->decref(visits);
  return both;
}

void *mt_pypaths(void *self, void *arguments) {
  (void)self;
  int error = errno;
  const size_t met_size = MT_OBJECTS * sizeof *now.visited, slots_size = MT_SLOTS * sizeof *now.slots,
               queue_size = MT_OBJECTS * sizeof *now.queue;
  void *wanted = api->item(arguments, 0), *roots = wanted ? api->item(arguments, 1) : NULL,
       *visits = roots ? api->item(arguments, 2) : NULL, *milliseconds = visits ? api->item(arguments, 3) : NULL,
       *last = milliseconds ? api->item(arguments, 4) : NULL, *found = NULL;
  bool possible = last && !mt_interpreter.layout.free_threaded && !now.visited;
  char *room = possible ? mt_sys_pages_alloc(met_size + slots_size + queue_size) : NULL;
  if (room) {
    now.visited = (struct visited *)room;
    now.slots = (uint32_t *)(room + met_size), now.queue = (uint32_t *)(room + met_size + slots_size);
    now.bound = mt_pybound_of(api->from_number(visits), api->from_number(milliseconds));
    found = search(wanted, roots, last);
    mt_sys_pages_free(room, met_size + slots_size + queue_size);
    now.visited = NULL;
  }
  api->clear_error();
  if (!found) api->incref(found = mt_pysearch_none);
  errno = error;
  return found;
}
