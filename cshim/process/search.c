#define _GNU_SOURCE
/* A thread of its own waits for the interpreter's lock. Who asked gives up when the time is over, and the thread,
 * whenever it gets the lock, sees that and does nothing; until then the next one who asks finds it waiting.
 *
 *   IDLE -> ASKED -> RUNS -> DONE -> IDLE
 *             |       '--> LATE -> IDLE     nobody waits for the result any more
 *             '--> GIVEN_UP -> IDLE, or ASKED again */
#include "process/search.h"

#include <sys/prctl.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/thread.h"
#include "process/boot.h"

#define MT_STACK (8u << 20)    /* finalizers of the program's may run on it */
#define MT_ROOM (1u << 20)     /* of the answer */
#define MT_SEARCH_SECONDS 10u  /* for looking at objects */
#define MT_SEARCH_MS 45000u    /* until nobody waits any more: a pass over a large heap cannot be cut short */

enum { IDLE, ASKED, RUNS, DONE, GIVEN_UP, LATE };

static uint32_t state;
static int32_t asked_in; /* pid: a forked child does not have the thread */
static char *text;
static struct mt_referrers request;
static const char *failure;

static bool turn(uint32_t from, uint32_t to) {
  bool turned = __atomic_compare_exchange_n(&state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  if (turned) mt_sys_wake(&state, 1);
  return turned;
}

/* Whether the one who asked still waits; else the thread has nothing to do. */
static bool begin(void) {
  while (!turn(ASKED, RUNS))
    if (turn(GIVEN_UP, IDLE)) return false;
  return true;
}

static void *search(void *unused) {
  (void)unused;
  mt_sys(SYS_prctl, PR_SET_NAME, MT_THREAD_NAME);
  const char *why = mt_referrers_find(&request, begin);
  failure = why;
  if (!turn(RUNS, DONE)) turn(LATE, IDLE);
  return NULL;
}

/* Waits while the state is that, until the time is over. */
static void wait_while(uint32_t now, uint32_t milliseconds) {
  uint64_t over = mt_clock_monotonic() + milliseconds * 1000000ull;
  for (uint64_t at; __atomic_load_n(&state, __ATOMIC_ACQUIRE) == now && (at = mt_clock_monotonic()) < over;)
    mt_sys_wait(&state, now, over - at);
}

static const char *ask(const struct mt_referrers *wanted) {
  if (asked_in != mt_sys_getpid()) state = IDLE, asked_in = mt_sys_getpid();
  uint32_t before = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (before != IDLE && before != GIVEN_UP) return "an earlier search is still under way there: try again in a while";
  if (!text && !(text = mt_sys_pages(MT_ROOM))) return "there is no memory for the answer";
  request = (struct mt_referrers){.limit = wanted->limit, .seconds = MT_SEARCH_SECONDS, .text = text, .room = MT_ROOM};
  if (turn(GIVEN_UP, ASKED)) return NULL;
  __atomic_store_n(&state, ASKED, __ATOMIC_RELEASE);
  if (mt_boot_thread(search, MT_STACK)) return NULL;
  __atomic_store_n(&state, IDLE, __ATOMIC_RELEASE);
  return "no thread can be had there";
}

const char *mt_search(struct mt_referrers *answer, uint32_t wait_ms) {
  const char *why = ask(answer);
  if (why) return why;
  wait_while(ASKED, wait_ms);
  if (turn(ASKED, GIVEN_UP))
    return "its interpreter is busy: the program kept it from other threads the whole time; try again, or with a "
           "longer --timeout";
  wait_while(RUNS, MT_SEARCH_MS);
  if (turn(RUNS, LATE))
    return "the search takes too long: the program has too many objects, or does not let other threads run";
  why = failure;
  *answer = request;
  if (why) mt_search_over();
  return why;
}

void mt_search_over(void) {
  mt_sys_pages_back(text, MT_ROOM);
  text = NULL;
  turn(DONE, IDLE);
}
