/* The other process of cover: makes memory to be shared, hands it over, and holds it until it is told to go. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cover.h"

enum { DESCRIPTORS = 3 };
static int channel = -1;
static pid_t peer;
static struct cover_offer offer;

union control {
  struct cmsghdr header;
  char space[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
};

static void send_offer(int socket, const int *descriptors) {
  union control control = {.space = {0}};
  struct iovec part = {&offer, sizeof offer};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  control.header = (struct cmsghdr){
      .cmsg_len = CMSG_LEN(DESCRIPTORS * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(&control.header), descriptors, DESCRIPTORS * sizeof(int));
  if (sendmsg(socket, &message, 0) != (ssize_t)sizeof offer) _exit(4);
}

static void make_offer(int *descriptors) {
  static const struct {
    unsigned devices;
    size_t size;
    unsigned long long handle_types, flags;
  } team = {1, 2 << 20, 1, 0};
  static const int property[16] = {1, 1, 1, 0};
  uint64_t a, b, block, memory, together;
  void *pool;
  DO(cuMemAlloc_v2, &a, 12345);
  DO(cuMemAlloc_v2, &b, 3 * MIB);
  HELP(cuIpcGetMemHandle, &offer.device[0], a);
  HELP(cuIpcGetMemHandle, &offer.device[1], b);
  DO(cuMemCreate, &memory, 4 * MIB, (const void *)property, 0);
  HELP(cuMemExportToShareableHandle, &descriptors[0], memory, 1, 0ull);
  DO(cuMulticastCreate, &together, (const void *)&team);
  HELP(cuMemExportToShareableHandle, &descriptors[1], together, 1, 0ull);
  HELP(cuMulticastAddDevice, together, 0);
  DO(cuMemPoolCreate, &pool, &cover_pool_share);
  DO(cuMemAllocFromPoolAsync, &block, 5000, pool, NULL);
  HELP(cuMemPoolExportToShareableHandle, &descriptors[2], pool, 1, 0ull);
  HELP(cuMemPoolExportPointer, offer.block, block);
}

/* Leaves all it has to the end of the process. */
static void serve(int socket, void (*begin)(void)) {
  int descriptors[DESCRIPTORS];
  char byte;
  if (!freopen("/dev/null", "w", stdout)) _exit(4);
  begin();
  make_offer(descriptors);
  send_offer(socket, descriptors);
  if (read(socket, &byte, 1) < 0) _exit(4);
  exit(0);
}

void cover_peer_start(void (*begin)(void)) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) abort();
  fflush(NULL);
  peer = fork();
  if (!peer) {
    close(pair[0]);
    serve(pair[1], begin);
  }
  close(pair[1]);
  channel = pair[0];
}

const struct cover_offer *cover_peer_offer(void) {
  int descriptors[DESCRIPTORS];
  union control control;
  struct iovec part = {&offer, sizeof offer};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(channel, &message, MSG_WAITALL) != (ssize_t)sizeof offer ||
      message.msg_controllen < CMSG_LEN(sizeof descriptors)) {
    printf("the other process offers nothing\n");
    exit(4);
  }
  memcpy(descriptors, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptors);
  offer.memory = descriptors[0];
  offer.team = descriptors[1];
  offer.pool = descriptors[2];
  return &offer;
}

void cover_peer_end(void) {
  int status;
  close(channel);
  waitpid(peer, &status, 0);
  printf("the other process ended with %d\n", status);
}
