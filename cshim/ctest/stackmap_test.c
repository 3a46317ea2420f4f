/* Which mapping a stack lies in, by both ways to ask the kernel. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "check.h"
#include "unwind/unwind.h"

/* The mapping by the kernel's own list, read in a way that needs no care. */
static bool expected(uintptr_t sp, struct mt_stack_bounds *bounds) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[8192], permissions[8];
  bool good = false;
  unsigned long start, end;
  while (fgets(line, sizeof line, maps))
    if (sscanf(line, "%lx-%lx %7s", &start, &end, permissions) == 3 && sp >= start && sp < end) {
      *bounds = (struct mt_stack_bounds){start, end};
      good = permissions[0] == 'r' && permissions[1] == 'w';
    }
  fclose(maps);
  return good;
}

static void check_here(const void *address) {
  struct mt_stack_bounds have = {0, 0}, want = {1, 1};
  CHECK(expected((uintptr_t)address, &want));
  errno = ESPIPE;
  CHECK(mt_stack_find((uintptr_t)address, &have));
  CHECK_EQ(errno, ESPIPE);
  CHECK_EQ(have.low, want.low);
  CHECK_EQ(have.top, want.top);
}

static void check_none(uintptr_t address) {
  struct mt_stack_bounds have;
  errno = ESPIPE;
  CHECK(!mt_stack_find(address, &have));
  CHECK_EQ(errno, ESPIPE);
}

static void own_stack(void) {
  char here = 0;
  check_here(&here);
}

static void *in_thread(void *argument) {
  (void)argument;
  own_stack();
  return NULL;
}

static void in_handler(int number) {
  (void)number;
  own_stack();
}

static ucontext_t fiber, back;
static void in_fiber(void) {
  own_stack();
  swapcontext(&fiber, &back);
}

static void everywhere(void) {
  static char alternative[65536] __attribute__((aligned(4096)));
  own_stack();

  pthread_t thread;
  pthread_create(&thread, NULL, in_thread, NULL);
  pthread_join(thread, NULL);

  char *room = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = room;
  fiber.uc_stack.ss_size = 65536;
  makecontext(&fiber, in_fiber, 0);
  swapcontext(&back, &fiber);

  stack_t stack = {.ss_sp = alternative, .ss_size = sizeof alternative};
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = in_handler, .sa_flags = SA_ONSTACK}, NULL);
  raise(SIGUSR1);

  char *pages = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages, 4096, PROT_NONE);
  mprotect(pages + 2 * 4096, 4096, PROT_READ);
  munmap(pages + 4 * 4096, 4096);
  check_none((uintptr_t)pages);
  check_here(pages + 4096);
  check_here(pages + 2 * 4096 - 1);
  check_none((uintptr_t)pages + 2 * 4096);
  check_here(pages + 3 * 4096);
  check_none((uintptr_t)in_fiber);
  check_none(0);
  check_none(UINTPTR_MAX);
}

/* With hundreds of mappings in between, which end anywhere in the pieces that are read. */
static void many_mappings(void) {
  enum { COUNT = 600 };
  char *pages = mmap(NULL, COUNT * 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < COUNT; i++) mprotect(pages + i * 8192 + 4096, 4096, PROT_NONE);
  for (int i = 0; i < COUNT; i += 7) {
    check_here(pages + i * 8192 + 100);
    check_none((uintptr_t)pages + (uintptr_t)i * 8192 + 4096);
  }
}

static void both_ways(void) {
  CHECK(mt_sandbox_kind() != MT_SANDBOX_OWN);
  everywhere();
  many_mappings();
  /* A filter of the program's own that ends it over the query. */
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    check_skip("no seccomp");
    return;
  }
  CHECK_EQ(mt_sandbox_kind(), MT_SANDBOX_OWN);
  everywhere();
  many_mappings();
}

static void no_descriptors(void) {
  struct mt_stack_bounds bounds;
  while (dup(0) >= 0) continue;
  CHECK(!mt_stack_find((uintptr_t)&bounds, &bounds));
}

int main(void) {
  static const struct check_case cases[] = {{"both ways", both_ways}, {"no descriptors", no_descriptors}};
  return check_main("stackmap", cases, sizeof cases / sizeof *cases);
}
