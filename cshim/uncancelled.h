/* Hooked functions are no cancellation points, but open, read, close and writev are: a thread that the program has cancelled would end inside of a hook, after the
 * real call. Whoever calls such functions on the program's threads holds cancellation off meanwhile. */
#pragma once

#include <pthread.h>

/* Returns what the release must be given. */
static inline int mt_cancel_hold(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static inline void mt_cancel_release(int before) { pthread_setcancelstate(before, &(int){0}); }
