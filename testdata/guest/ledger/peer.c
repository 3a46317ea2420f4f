/* The other process. It makes memory to be shared, hands it over, and lets it go when it is told to, which may be
 * before the one that opened it does. It keeps a book of its own. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger.h"

struct request {
  enum wish wish; /* or WISH_END and the number of what is to go; negative: the process itself */
  int device, of;
  uint64_t size;
};

union control {
  struct cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1;
static pid_t peer;

static void send_offer(int socket, struct offer *offer) {
  union control control = {.space = {0}};
  struct iovec part = {offer, sizeof *offer};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (offer->descriptor >= 0) {
    message.msg_control = &control, message.msg_controllen = sizeof control;
    control.header =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &offer->descriptor, sizeof(int));
  }
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != (ssize_t)sizeof *offer) _exit(0); /* the other one was killed */
  if (offer->descriptor >= 0) close(offer->descriptor);
}

static struct offer receive_offer(int socket) {
  struct offer offer;
  union control control;
  struct iovec part = {&offer, sizeof offer};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(socket, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof offer)
    must("the other process", -1, 0);
  offer.descriptor = -1;
  if (message.msg_controllen) memcpy(&offer.descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  return offer;
}

/* What this process made, by number. */
enum { MOST = 1 << 20 };
static struct made {
  struct slot slot;
  enum wish wish;
  uint64_t at;
  void *pool;
} *made[MOST];
static int count;

static void export_pool_block(struct actor *a, struct made *m, const struct made *pool, uint64_t size,
                              struct offer *offer) {
  m->pool = pool->pool;
  gain(a, &m->slot, 0, DRIVER, pool->slot.hold[0].place, size, NO_CONTEXT);
  DO(a, cuMemAllocFromPoolAsync, &m->at, size, m->pool, NULL);
  HELP(cuMemPoolExportPointer(offer->block, m->at));
}

static void fulfil(struct actor *a, struct made *m, const struct request *r, struct offer *offer) {
  const int property[16] = {1, BY_DESCRIPTOR | BY_FABRIC, 1, r->device};
  const struct {
    unsigned devices;
    size_t size;
    unsigned long long handle_types, flags;
  } team = {1, r->size, 1, 0};
  const struct mt_cuda_pool_props props = pool_on(r->device, 1);
  enter(a, primary_of(r->device));
  switch (r->wish) {
    case WISH_DEVICE:
      gain(a, &m->slot, 0, DRIVER, r->device, r->size, NO_CONTEXT);
      DO(a, cuMemAlloc_v2, &m->at, r->size);
      HELP(cuIpcGetMemHandle(&offer->ipc, m->at));
      break;
    case WISH_HANDLE: case WISH_FABRIC:
      gain(a, &m->slot, 0, DRIVER, r->device, r->size, NO_CONTEXT);
      DO(a, cuMemCreate, &m->at, r->size, (const void *)property, 0);
      if (r->wish == WISH_FABRIC) HELP(cuMemExportToShareableHandle(offer->block, m->at, BY_FABRIC, 0));
      else HELP(cuMemExportToShareableHandle(&offer->descriptor, m->at, BY_DESCRIPTOR, 0));
      break;
    case WISH_TEAM:
      gain(a, &m->slot, 0, MULTICAST, NOWHERE, r->size, NO_CONTEXT);
      DO(a, cuMulticastCreate, &m->at, (const void *)&team);
      HELP(cuMemExportToShareableHandle(&offer->descriptor, m->at, 1, 0));
      HELP(cuMulticastAddDevice(m->at, r->device));
      break;
    case WISH_POOL:
      m->slot.hold[0].place = r->device;
      DO(a, cuMemPoolCreate, &m->pool, &props);
      HELP(cuMemPoolExportToShareableHandle(&offer->descriptor, m->pool, 1, 0));
      break;
    default: export_pool_block(a, m, made[r->of], r->size, offer);
  }
}

static void let_go(struct actor *a, struct made *m) {
  enter_any(a);
  if (m->wish != WISH_POOL) lose(a, &m->slot, 0);
  switch (m->wish) {
    case WISH_DEVICE: DO(a, cuMemFree_v2, m->at); break;
    case WISH_HANDLE: case WISH_FABRIC: case WISH_TEAM: DO(a, cuMemRelease, m->at); break;
    case WISH_POOL: DO(a, cuMemPoolDestroy, m->pool); break;
    default: DO(a, cuMemFreeAsync, m->at, NULL);
  }
  free(m);
}

/* Leaves what it has to the end of the process. */
static void serve(struct actor *a, int socket) {
  struct request r;
  while (read(socket, &r, sizeof r) == (ssize_t)sizeof r && (r.wish != WISH_END || r.of >= 0)) {
    struct offer offer = {.number = count, .descriptor = -1};
    if (r.wish == WISH_END) {
      let_go(a, made[r.of]);
      made[r.of] = NULL;
    } else {
      struct made *m = made[count] = calloc(1, sizeof *m);
      if (!m || ++count == MOST) abort();
      m->wish = r.wish;
      fulfil(a, m, &r, &offer);
    }
    send_offer(socket, &offer);
  }
  exit(0);
}

void peer_start(const char *path, uint64_t seed, void (*begin)(struct actor *)) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) abort();
  fflush(NULL);
  peer = fork();
  if (!peer) {
    static struct actor self;
    close(pair[0]);
    book_start(path, 1, true);
    self.state = seed;
    self.page = book_page(0);
    book_begin(&self);
    begin(&self);
    serve(&self, pair[1]);
  }
  close(pair[1]);
  channel = pair[0];
}

static struct offer ask(const struct request *r) {
  pthread_mutex_lock(&turn);
  if (write(channel, r, sizeof *r) != (ssize_t)sizeof *r) must("the other process", -1, 0);
  struct offer offer = receive_offer(channel);
  pthread_mutex_unlock(&turn);
  return offer;
}

struct offer peer_ask(enum wish wish, int device, uint64_t size, int of) {
  return ask(&(struct request){wish, device, of, size});
}
void peer_free(int number) { ask(&(struct request){.wish = WISH_END, .of = number}); }

void peer_stop(void) {
  int status;
  close(channel);
  waitpid(peer, &status, 0);
  must("the other process ended", status, 0);
}
