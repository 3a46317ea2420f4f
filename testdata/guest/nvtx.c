/* A program with NVTX ranges around its allocations; each size says which tag its events must carry. Built against
 * NVTX's headers of several ages and, with NVTX_HEADER "nvToolsExt.h", against the library that came before them. nvtx
 * MODE [LIBRARY...] */
#define _GNU_SOURCE
#include NVTX_HEADER

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"

extern char **environ;
static void *context;

static void check(int bad, const char *what) {
  if (!bad) return;
  printf("%s failed\n", what);
  fflush(stdout);
  _exit(9);
}

static void start(void) {
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
}

static void allocate(size_t size) {
  uint64_t p;
  check(cuMemAlloc_v2(&p, size), "cuMemAlloc");
  check(cuMemFree_v2(p), "cuMemFree");
}

static nvtxEventAttributes_t event(int type, const void *message) {
  nvtxEventAttributes_t e = {0};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.colorType = NVTX_COLOR_ARGB;
  e.color = 0xff00ff00;
  e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  e.payload.ullValue = 4711;
  e.messageType = type;
  if (type == NVTX_MESSAGE_TYPE_ASCII) e.message.ascii = message;
  if (type == NVTX_MESSAGE_TYPE_UNICODE) e.message.unicode = message;
  if (type == NVTX_MESSAGE_TYPE_REGISTERED) e.message.registered = (nvtxStringHandle_t)message;
  return e;
}

static void push(nvtxDomainHandle_t domain, int type, const void *message) {
  nvtxEventAttributes_t e = event(type, message);
  nvtxDomainRangePushEx(domain, &e);
}

static void *work(void *name) {
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  nvtxRangePushA(name);
  allocate(3001);
  nvtxRangePop();
  allocate(3002);
  return NULL;
}

static nvtxRangeId_t begun;
static void *end_range(void *unused) {
  nvtxRangeEnd(begun);
  return unused;
}

static void in_thread(void *(*run)(void *), void *argument) {
  pthread_t thread;
  check(pthread_create(&thread, NULL, run, argument), "pthread_create");
  pthread_join(thread, NULL);
}

/* Everything that carries a name, before and after the first CUDA call. */
static void names(void) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("com.example"), wide = nvtxDomainCreateW(L"w\u00e4rme");
  nvtxStringHandle_t early = nvtxDomainRegisterStringA(domain, "registered early");
  nvtxRangePushA("before CUDA");
  nvtxNameOsThreadA((uint32_t)gettid(), "a thread");
  nvtxDomainNameCategoryA(domain, 7, "a category");
  start();
  allocate(1001);
  nvtxRangePushW(L"innen \u20ac");
  allocate(1002);
  push(domain, NVTX_MESSAGE_TYPE_REGISTERED, early);
  allocate(1003);
  push(domain, NVTX_MESSAGE_TYPE_REGISTERED, nvtxDomainRegisterStringW(domain, L"sp\u00e4ter"));
  allocate(1004);
  nvtxRangePop();
  nvtxRangePop();
  allocate(1005);
  nvtxDomainRangePop(domain);
  nvtxDomainRangePop(domain);
  nvtxDomainRangePop(domain); /* one too many */
  nvtxRangePop();
  allocate(1006);
  push(wide, NVTX_MESSAGE_TYPE_UNICODE, L"breit");
  push(wide, NVTX_MESSAGE_TYPE_ASCII, "schmal");
  allocate(1007);
  nvtxDomainRangePop(wide);
  nvtxDomainRangePop(wide);
  nvtxDomainDestroy(wide);
  nvtxMarkA("plain mark");
  nvtxEventAttributes_t e = event(NVTX_MESSAGE_TYPE_UNICODE, L"m\u00e4rk");
  nvtxMarkEx(&e);
  nvtxDomainMarkEx(domain, &e);
  begun = nvtxRangeStartA("across threads");
  in_thread(end_range, NULL);
  nvtxRangePushA("main thread");
  in_thread(work, "other thread");
  in_thread(work, "third thread");
  allocate(1008);
  nvtxRangePop();
}

/* What a program can print of the calls' answers, whether or not ranges are open and the process records. */
static void answers(void) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("answers");
  nvtxEventAttributes_t e = event(NVTX_MESSAGE_TYPE_ASCII, "e");
  for (int i = 0; i < 2; i++) {
    int pushed[] = {nvtxRangePushA("a"), nvtxRangePushW(L"b"), nvtxRangePushEx(&e), nvtxDomainRangePushEx(domain, &e)};
    int popped[] = {nvtxRangePop(), nvtxDomainRangePop(domain), nvtxRangePop()};
    int none[] = {nvtxRangePop(), nvtxRangePop(), nvtxDomainRangePop(domain)};
    uint64_t started[] = {nvtxRangeStartA("a"), nvtxRangeStartW(L"b"), nvtxRangeStartEx(&e),
                          nvtxDomainRangeStartEx(domain, &e)};
    printf("push %d %d %d %d\n", pushed[0], pushed[1], pushed[2], pushed[3]);
    printf("pop %d %d %d and %d %d %d\n", popped[0], popped[1], popped[2], none[0], none[1], none[2]);
    for (int j = 0; j < 4; j++) printf("start %llu\n", (unsigned long long)started[j]);
    for (int j = 0; j < 3; j++) nvtxRangeEnd(started[j]);
    nvtxDomainRangeEnd(domain, started[3]);
    if (!i) start();
    allocate(1009);
  }
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The environment as every way of reading it shows it. */
static void environment(void) {
  static const char *const names[] = {
      "HOME", "PATH",      "NVTX_INJECTION32_PATH", "NVTX_INJECTION64_PATHS", "NVTX", "N", "", "NOTHING",
      "MARK", "NVTX_EMPTY"};
  nvtxRangePushA("attach");
  int count = 0;
  while (environ[count]) count++;
  qsort(environ, (size_t)count, sizeof *environ, by_text);
  for (char **e = environ; *e; e++)
    if (strncmp(*e, "LD_PRELOAD=", 11)) puts(*e);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    printf("%s: %s\n", names[i], getenv(names[i]) ? getenv(names[i]) : "(none)");
  setenv("LATE", "1", 1);
  setenv("NVTX_INJECTION64_PATH", "/set/by/the/program.so", 1);
  printf("%s %s\n", getenv("LATE"), getenv("NVTX_INJECTION64_PATH"));
  unsetenv("LATE");
  printf("%d\n", getenv("LATE") == NULL);
  clearenv();
  printf("%d\n", getenv("HOME") == NULL);
  fflush(stdout);
  execle("/usr/bin/env", "env", "A=1", (char *)NULL, environ);
}

/* Libraries with NVTX of their own come and go. */
static void libraries(int count, char **paths) {
  start();
  nvtxRangePushA("program");
  for (int i = 0; i < 2 * count; i++) {
    void *library = dlopen(paths[i % count], RTLD_NOW | RTLD_LOCAL);
    check(!library, dlerror());
    void (*enter)(int) = (void (*)(int))dlsym(library, "enter");
    int (*leave)(void) = (int (*)(void))dlsym(library, "leave");
    enter(i);
    allocate(4000 + (size_t)i);
    leave();
    dlclose(library);
  }
  allocate(4999);
}

/* The files are gone before the first range. */
static void deleted(int count, char **paths) {
  for (int i = 0; i < count; i++) check(unlink(paths[i]), paths[i]);
  check(chdir("/"), "chdir");
  names();
}

int main(int n, char **v) {
  const char *mode = n > 1 ? v[1] : "";
  if (!strcmp(mode, "names")) names();
  if (!strcmp(mode, "answers")) answers();
  if (!strcmp(mode, "environment")) environment();
  if (!strcmp(mode, "libraries")) libraries(n - 2, v + 2);
  if (!strcmp(mode, "deleted")) deleted(n - 2, v + 2);
  puts("done");
  return 0;
}
