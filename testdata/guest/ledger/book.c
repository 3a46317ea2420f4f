/* The account, in a file that is mapped and so outlives the program. A page for each thread has two copies of its
 * figures and one word that says which holds and whether a call is under way: then the other copy says how things are
 * if that call took effect.
 *
 * Beside the pages stand two running sums of each account: what is certainly live, which grows after a call and shrinks
 * before one, and what may be, the other way around. Whoever watches the calls sees something between the two at every
 * moment, so his peak lies between theirs. In a serial run they are the same. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger.h"

enum { MOST_PAGES = 129, CALLING = 2, ALL = PLACES, MAGIC = 0x6c656467 };

struct cell {
  uint64_t made, made_bytes, ended, ended_bytes, refused;
};

struct copy {
  struct cell cell[ACCOUNTS][PLACES];
  uint64_t failed_frees, steps;
};

struct page {
  uint64_t thread; /* 0: it never began */
  uint64_t state;  /* index of the copy that holds, and CALLING */
  struct copy copy[2];
};

struct sum {
  uint64_t now, peak;
};

static struct book {
  uint32_t magic, serial;
  uint64_t process;
  uint64_t pages, at_end;
  struct sum certain[ACCOUNTS][PLACES + 1], possible[ACCOUNTS][PLACES + 1];
  uint32_t calls[HOOKED_COUNT];
  struct page page[MOST_PAGES];
} *book;

static struct book *map(const char *path, int flags) {
  int fd = open(path, flags | O_CLOEXEC, 0600);
  if (fd < 0 || (flags & O_CREAT && ftruncate(fd, sizeof *book))) return NULL;
  struct book *found =
      mmap(NULL, sizeof *book, flags & O_CREAT ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return found == MAP_FAILED ? NULL : found;
}

void book_start(const char *path, int pages, bool serial) {
  if (pages > MOST_PAGES || !(book = map(path, O_RDWR | O_CREAT | O_EXCL))) {
    perror(path);
    exit(5);
  }
  book->serial = serial;
  book->process = (uint64_t)getpid();
  book->pages = (uint64_t)pages;
  book->magic = MAGIC;
}

struct page *book_page(int number) { return &book->page[number]; }

void book_begin(struct actor *a) { a->page->thread = (uint64_t)syscall(SYS_gettid); }

static struct copy *holding(struct page *p) { return &p->copy[p->state & 1]; }

/* The copy that is to hold next, made equal to the one that does when the first change is staged. */
static struct copy *next(struct actor *a) {
  struct copy *to = &a->page->copy[~a->page->state & 1];
  if (!a->staged) *to = *holding(a->page);
  a->staged = true;
  return to;
}

void book_gain(struct actor *a, enum account account, int place, uint64_t bytes) {
  struct cell *c = &next(a)->cell[account][place];
  c->made++;
  c->made_bytes += bytes;
  a->gains[account][place] += bytes;
}

void book_lose(struct actor *a, enum account account, int place, uint64_t bytes) {
  struct cell *c = &next(a)->cell[account][place];
  c->ended++;
  c->ended_bytes += bytes;
  a->losses[account][place] += bytes;
}

void book_refusal(struct actor *a, enum account account, int place) { next(a)->cell[account][place].refused++; }
void book_failed_free(struct actor *a) { next(a)->failed_frees++; }

static void grow(struct sum *s, uint64_t bytes) {
  uint64_t now = __atomic_add_fetch(&s->now, bytes, __ATOMIC_SEQ_CST),
           peak = __atomic_load_n(&s->peak, __ATOMIC_RELAXED);
  while (now > peak && !__atomic_compare_exchange_n(&s->peak, &peak, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* What goes is taken off before what comes is added: one call never does both. */
static void move(uint64_t amounts[ACCOUNTS][PLACES], struct sum sums[ACCOUNTS][PLACES + 1], bool up) {
  for (int i = 0; i < ACCOUNTS; i++)
    for (int at = 0; at < PLACES; at++) {
      uint64_t bytes = amounts[i][at];
      if (!bytes) continue;
      if (up) grow(&sums[i][at], bytes), grow(&sums[i][ALL], bytes);
      else
        __atomic_sub_fetch(&sums[i][at].now, bytes, __ATOMIC_SEQ_CST),
            __atomic_sub_fetch(&sums[i][ALL].now, bytes, __ATOMIC_SEQ_CST);
    }
}

void book_open(struct actor *a) {
  if (!a->staged) return;
  move(a->losses, book->certain, false);
  move(a->gains, book->possible, true);
  __atomic_store_n(&a->page->state, a->page->state | CALLING, __ATOMIC_SEQ_CST);
}

void book_close(struct actor *a) {
  if (!a->staged) return;
  a->page->copy[~a->page->state & 1].steps++;
  __atomic_store_n(&a->page->state, ~a->page->state & 1, __ATOMIC_SEQ_CST);
  move(a->gains, book->certain, true);
  move(a->losses, book->possible, false);
  memset(a->gains, 0, sizeof a->gains);
  memset(a->losses, 0, sizeof a->losses);
  a->staged = false;
}

void book_count(enum hooked id) { __atomic_add_fetch(&book->calls[id], 1, __ATOMIC_RELAXED); }

#define MT_HOOK(number, level, symbol, ...) #symbol,
#define MT_CUSTOM MT_HOOK
#define MT_REPORT(...)
static const char *const symbols[] = {
#include "hooks.def"
};

static const char *const accounts[] = {"driver",  "managed", "host",  "registered",
                                       "foreign", "address", "graph", "multicast"};

static int device_at(int place) { return place == NOWHERE ? -1 : place; }

static void show_copy(const struct copy *c) {
  const char *between = "";
  printf("{\"failed_frees\":%lu,\"cells\":[", c->failed_frees);
  for (int i = 0; i < ACCOUNTS; i++)
    for (int at = 0; at < PLACES; at++) {
      const struct cell *x = &c->cell[i][at];
      if (!x->made && !x->ended && !x->refused) continue;
      printf("%s{\"account\":\"%s\",\"device\":%d,\"made\":%lu,\"made_bytes\":%lu,\"ended\":%lu,\"ended_bytes\":%lu,"
             "\"refused\":%lu}",
             between, accounts[i], device_at(at), x->made, x->made_bytes, x->ended, x->ended_bytes, x->refused);
      between = ",";
    }
  printf("]}");
}

static void show_pages(void) {
  for (uint64_t i = 0; i < book->pages; i++) {
    const struct page *p = &book->page[i];
    printf("%s{\"thread\":%lu,\"calling\":%s,\"now\":", i ? "," : "", p->thread, p->state & CALLING ? "true" : "false");
    show_copy(&p->copy[p->state & 1]);
    if (p->state & CALLING) {
      printf(",\"after\":");
      show_copy(&p->copy[~p->state & 1]);
    }
    printf("}\n");
  }
}

/* Writes a book, which may be that of a program that was killed, as JSON. */
int book_show(const char *path) {
  book = map(path, O_RDONLY);
  if (!book || book->magic != MAGIC) return 1;
  printf("{\"process\":%lu,\"serial\":%s,\"threads\":[\n", book->process, book->serial ? "true" : "false");
  show_pages();
  printf("],\"peaks\":[");
  for (int i = 0; i < ACCOUNTS; i++)
    for (int at = 0; at <= ALL; at++)
      printf("%s{\"account\":\"%s\",\"device\":%d,\"all\":%s,\"least\":%lu,\"most\":%lu}", i + at ? "," : "",
             accounts[i], at == ALL ? -1 : device_at(at), at == ALL ? "true" : "false", book->certain[i][at].peak,
             book->possible[i][at].peak);
  printf("],\"calls\":{");
  for (int i = 0; i < HOOKED_COUNT; i++) printf("%s\"%s\":%u", i ? "," : "", symbols[i], book->calls[i]);
  printf("}}\n");
  return 0;
}
