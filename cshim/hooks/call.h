/* The life of one hooked call: what is drawn before the real function runs and what is recorded after it. */
#pragma once

#include <stdint.h>

#include "base/thread.h"
#include "record/caller.h"

#define MT_HOST (-1)    /* device of memory that is on no device */
#define MT_CURRENT (-2) /* query the driver for the calling thread's device */

struct mt_call {
  struct mt_thread *self; /* NULL: nothing is recorded */
  uint64_t seq;           /* number drawn before a free, 0 for others */
  uint64_t outer;         /* inflight bound to restore; where self is NULL, the call's frame */
  uint64_t pool;          /* named by a stream-ordered allocation, 0: the device's current one */
  uintptr_t caller;
  uint16_t id;
  uint16_t recorded_before;     /* the thread's driver events when the call began */
  uint8_t sets_inflight; /* this call set the inflight bound */
  uint8_t outermost_driver;   /* this call is the thread's outermost driver call */
  uint8_t outermost; /* this runtime call is the label of what happens inside it */
  uint8_t framed;    /* this call is the one where the program's stack begins */
};

struct mt_outcome {
  uint64_t addr, size;
  union {
    uint64_t related; /* whichever of these the event has */
    uint64_t stream;  /* of stream-ordered memory */
    uint64_t handle;  /* MAP */
    uint64_t owner;   /* of memory that no context owns */
    uint64_t used;    /* RESERVE: bytes in use */
  };
  int status;
  int device;
  uint8_t kind;  /* enum mt_kind */
  uint8_t mem;   /* enum mt_mem; for CREATE, DESTROY, RESERVE and LAUNCH enum mt_object */
  uint8_t flags; /* MT_FLAG_* */
};

/* Before the real call. releases: it ends something that exists, so its order number is drawn now, and its close must
 * come. */
void mt_driver_open(struct mt_call *call, uint16_t id, const struct mt_frame *frame, int releases);

/* After the real call, where the open found that nothing is recorded: a child of a process that was recording begins
 * its own recording with the first call that CUDA does not refuse. False: do not record this call. */
bool mt_driver_open_late(struct mt_call *call, int status);
bool mt_runtime_open_late(struct mt_call *call, int status);
void mt_runtime_open(struct mt_call *call, uint16_t id, const struct mt_frame *frame, int releases);

/* After the real call. Completes the outcome in place. */
void mt_driver_close(struct mt_call *call, struct mt_outcome *outcome);
void mt_runtime_close(struct mt_call *call, struct mt_outcome *outcome);

/* Ends a call that is not recorded, and that drew no number. */
void mt_driver_skip(struct mt_call *call);

/* Records an extra event beside a call: a context whose creation was not seen, the size of a pool. */
void mt_call_record_extra(struct mt_thread *self, uint16_t id, uintptr_t caller, const struct mt_outcome *outcome);

/* The same under a number that was drawn while the call, which is still open, had one of its own. */
void mt_call_record_extra_at(struct mt_thread *self, uint16_t id, uintptr_t caller, const struct mt_outcome *outcome,
                             uint64_t seq);

/* Called when CUDA refuses an allocation for want of memory. Any thread, in the middle of anything. Registered once, at
 * load. */
void mt_call_on_out_of_memory(void (*listener)(void));
