/* ledger BOOK SEED THREADS DEVICES STEPS [serial] [ends] [drain] [reset]
 *                     takes random steps and keeps the book in BOOK, the other process's in BOOK.peer
 * ledger show BOOK    writes a book as JSON
 *
 * serial: one step at a time; ends: contexts come and go; drain: all goes at the end; reset: then the primary contexts
 * are reset. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

static const struct kind *const kinds[] = {
    &plain,    &pinned, &registered, &streamed, &pooled,   &handled, &multicast, &arrayed, &tiled,       &graphed,
    &captured, &module, &library,    &green,    &external, &opened,  &imported,  &teamed,  &shared_block};
enum { KINDS = sizeof kinds / sizeof *kinds, SLOTS = 512, MOST_THREADS = 128 };

struct slot slots[SLOTS];
int slot_count = SLOTS;
static long steps;
static struct actor actors[MOST_THREADS];

/* splitmix64 */
uint64_t roll(struct actor *a) {
  uint64_t z = a->state += 0x9E3779B97F4A7C15ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

/* Small and large, round and odd. */
size_t any_size(struct actor *a) {
  switch (pick(a, 6)) {
    case 0: return 1 + pick(a, 64);
    case 1: return 1 + pick(a, 4096);
    case 2: return 512 * (1 + pick(a, 200));
    case 3: return 1 + pick(a, 1 << 20);
    case 4: return (1 + pick(a, 16)) * MIB;
    default: return 1 + pick(a, 4 << 20);
  }
}

void gain(struct actor *a, struct slot *s, int hold, enum account account, int place, uint64_t bytes, int owner) {
  s->hold[hold] = (struct hold){true, account, place, owner, bytes};
  book_gain(a, account, place, bytes);
}

void lose(struct actor *a, struct slot *s, int hold) {
  s->hold[hold].live = false;
  book_lose(a, s->hold[hold].account, s->hold[hold].place, s->hold[hold].bytes);
}

static const struct kind *any_kind(struct actor *a) {
  unsigned sum = 0;
  for (int i = 0; i < KINDS; i++) sum += kinds[i]->weight;
  unsigned at = pick(a, sum);
  for (int i = 0;; i++) {
    if (at < kinds[i]->weight) return kinds[i];
    at -= kinds[i]->weight;
  }
}

static void step(struct actor *a, struct slot *s) {
  if (s->kind) {
    if (s->kind->step(a, s)) s->kind = NULL;
    return;
  }
  const struct kind *kind = any_kind(a);
  memset(s->hold, 0, sizeof s->hold);
  memset(s->data, 0, sizeof s->data);
  s->context = NO_CONTEXT;
  kind->make(a, s);
  s->kind = kind;
}

static void *act(void *actor) {
  struct actor *a = actor;
  book_begin(a);
  for (long i = 0; i < steps; i++) {
    struct slot *s = &slots[pick(a, SLOTS)];
    if (world_ends() && one_in(a, 150)) world_turn(a);
    world_share();
    pthread_mutex_lock(&s->lock);
    step(a, s);
    pthread_mutex_unlock(&s->lock);
    world_leave();
  }
  return NULL;
}

static void drain(struct actor *a) {
  a->draining = true;
  for (int i = 0; i < SLOTS; i++)
    for (long tries = 0; slots[i].kind; tries++) {
      if (tries == 100000) must(slots[i].kind->name, -1, 0);
      step(a, &slots[i]);
    }
}

static bool has(char **words, const char *word) {
  for (; *words; words++)
    if (!strcmp(*words, word)) return true;
  return false;
}

static int wanted_devices;
static bool serial, ending;

static void begin_peer(struct actor *a) {
  route_start();
  HELP(cuInit(0));
  world_start(a, wanted_devices, true, false);
}

static void run(int threads, uint64_t seed, char **how) {
  pthread_t thread[MOST_THREADS];
  struct actor *first = &actors[0];
  for (int i = 0; i < threads; i++) {
    actors[i].state = seed * 1000003 + (uint64_t)i;
    actors[i].page = book_page(i + 1);
  }
  static struct actor main_actor;
  main_actor.state = ~seed;
  main_actor.page = book_page(0);
  book_begin(first = &main_actor);
  route_start();
  register_variable(variable, sizeof variable);
  HELP(cuInit(0));
  world_start(first, wanted_devices, serial, ending);
  for (int i = 0; i < SLOTS; i++) pthread_mutex_init(&slots[i].lock, NULL);
  for (int i = 0; i < threads; i++)
    if (pthread_create(&thread[i], NULL, act, &actors[i])) abort();
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  if (has(how, "drain")) drain(first);
  if (has(how, "reset")) world_reset(first);
}

int main(int argc, char **argv) {
  char peer[4096];
  if (argc == 3 && !strcmp(argv[1], "show")) return book_show(argv[2]);
  if (argc < 6) return 2;
  uint64_t seed = strtoull(argv[2], NULL, 10);
  int threads = atoi(argv[3]);
  wanted_devices = atoi(argv[4]);
  steps = atol(argv[5]) / (threads ? threads : 1);
  serial = has(argv + 6, "serial");
  ending = has(argv + 6, "ends");
  if (threads < 1 || threads > MOST_THREADS || wanted_devices < 1 || wanted_devices > MOST_DEVICES) return 2;
  snprintf(peer, sizeof peer, "%s.peer", argv[1]);
  peer_start(peer, seed + 1, begin_peer); /* before this process starts CUDA: afterwards the other one could not */
  book_start(argv[1], threads + 1, serial);
  run(threads, seed, argv + 6);
  peer_stop();
  puts("end");
  return 0;
}
