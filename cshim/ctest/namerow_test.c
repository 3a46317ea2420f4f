/* Names as scripts pack them: what is written, and what of hostile bytes is not. */
#define _GNU_SOURCE
#include "spool/namerow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "check.h"
#include "oracle.h"
#include "process/recorder.h"
#include "spool/dict.h"

static struct oracle o;

/* Bytes that end where no more can be read. */
static char *before_the_edge(const void *data, size_t size) {
  static char *page;
  if (!page) {
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && !mprotect(page + 4096, 4096, PROT_NONE));
  }
  return memcpy(page + 4096 - size, data, size);
}

static struct mt_thread *begin(void) {
  const char *spool = check_output("n.bin");
  check_event(1);
  CHECK(oracle_open(&o, spool));
  return mt_thread_recording_now();
}

/* The names that were written, in a fresh array. */
static size_t names(struct mt_record **found) {
  struct oracle_record *all;
  size_t count = oracle_records(&o, &all), n = 0;
  *found = calloc(count + 1, sizeof **found);
  for (size_t i = 0; i < count; i++)
    if (all[i].record.kind == MT_NAME) (*found)[n++] = all[i].record;
  free(all);
  return n;
}

struct packed {
  uint64_t epoch;
  struct mt_name_row row[3];
} __attribute__((packed));

static struct packed three(void) {
  return (struct packed){mt_epoch_page->epoch,
                         {{0x1000, 10, 1, 5, 2}, {0x2000, 20, 2, 6, 3}, {0x3000, 30, 3, 7, 65535}}};
}

static void writes(void) {
  struct mt_thread *self = begin();
  struct mt_record *found;
  struct packed p = three();
  uint64_t places[3] = {0x9000, 0, 0xa000};
  CHECK_EQ(mt_name_rows(self, before_the_edge(&p, sizeof p), sizeof p, NULL, 0), 3);
  CHECK_EQ(mt_name_rows(self, (char *)&p, sizeof p, before_the_edge(places, sizeof places), sizeof places), 2);
  CHECK_EQ(names(&found), 5);
  for (int i = 0; i < 3; i++) {
    CHECK_EQ(found[i].addr, 0x1000 * (i + 1));
    CHECK_EQ(found[i].size, 10 * (i + 1));
    CHECK_EQ(found[i].handle, i + 1);
    CHECK_EQ(found[i].name, 5 + i);
    CHECK_EQ(found[i].api, p.row[i].category);
    CHECK_EQ(found[i].device, -1);
    CHECK_EQ(found[i].stack | found[i].pystack | found[i].tag, 0);
  }
  CHECK_EQ(found[3].addr, 0x9000);
  CHECK_EQ(found[3].name, 5);
  CHECK_EQ(found[4].addr, 0xa000);
  CHECK_EQ(found[4].name, 7);
  CHECK(found[1].seq == found[0].seq + 1);
  free(found);
}

/* Everything but whole rows of this recording with a category. */
static void hostile(void) {
  struct mt_thread *self = begin();
  struct mt_record *found;
  uint64_t place = 0x9000;
  for (size_t size = 0; size <= sizeof three(); size++) {
    struct packed p = three();
    size_t rows = size < 8 ? 0 : (size - 8) / sizeof p.row[0];
    CHECK_EQ(mt_name_rows(self, before_the_edge(&p, size), size, NULL, 0), rows);
  }
  size_t before = names(&found);
  free(found);
  struct packed p = three();
  for (int wrong = 0; wrong < 3; wrong++) {
    p.epoch = wrong == 0 ? 0 : wrong == 1 ? mt_epoch_page->epoch + 1 : UINT64_MAX;
    CHECK_EQ(mt_name_rows(self, (char *)&p, sizeof p, NULL, 0), 0);
  }
  p = three();
  p.row[0].category = 0, p.row[1].category = 1u << 16, p.row[2].category = UINT32_MAX;
  CHECK_EQ(mt_name_rows(self, (char *)&p, sizeof p, NULL, 0), 0);
  for (size_t room = 0; room <= sizeof place; room++) {
    struct packed q = three();
    CHECK_EQ(mt_name_rows(self, (char *)&q, sizeof q, before_the_edge(&place, room), room), room == sizeof place);
  }
  CHECK_EQ(names(&found), before + 1);
  free(found);
}

/* Far more than the rings have room for: what finds none is lost and counted, and nothing else happens. */
static void huge(void) {
  mt_config.spool_max = mt_config.spool_hard_max = 1 << 20;
  struct mt_thread *self = begin();
  enum { ROWS = 100000 };
  char *rows = calloc(1, 8 + ROWS * sizeof(struct mt_name_row));
  memcpy(rows, &mt_epoch_page->epoch, 8);
  for (uint32_t i = 0; i < ROWS; i++) {
    struct mt_name_row row = {UINT64_MAX - i, UINT64_MAX, UINT64_MAX, UINT32_MAX, 1 + i % 65535};
    memcpy(rows + 8 + i * sizeof row, &row, sizeof row);
  }
  CHECK_EQ(mt_name_rows(self, rows, 8 + ROWS * sizeof(struct mt_name_row), NULL, 0), ROWS);
  struct mt_record *found;
  size_t written = names(&found);
  CHECK(written > 1000 && written < ROWS);
  CHECK_EQ(written + oracle_lost(&o), ROWS);
  CHECK_EQ(found[0].addr, UINT64_MAX);
  free(found);
  free(rows);
}

/* A forked child has no recording yet, so the parent's names mean nothing there. */
static struct packed parents;
static void say_as_parent(void) {
  struct mt_thread *self = mt_self;
  CHECK(!mt_thread_recording_now());
  CHECK_EQ(mt_name_rows(self, (char *)&parents, sizeof parents, NULL, 0), 0);
  check_output("child.bin");
  check_event(2);
  CHECK_EQ(mt_name_rows(mt_thread_recording_now(), (char *)&parents, sizeof parents, NULL, 0), 0);
  parents.epoch = mt_epoch_page->epoch;
  CHECK_EQ(mt_name_rows(mt_thread_recording_now(), (char *)&parents, sizeof parents, NULL, 0), 3);
}

static void forked(void) {
  begin();
  parents = three();
  CHECK_EQ(check_in_child(say_as_parent), 0);
  struct mt_record *found;
  CHECK_EQ(names(&found), 0);
  free(found);
}

int main(void) {
  static const struct check_case cases[] = {
      {"writes", writes}, {"hostile", hostile}, {"huge", huge}, {"forked", forked}};
  return check_main("namerow", cases, sizeof cases / sizeof *cases);
}
