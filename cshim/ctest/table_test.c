/* Tables that are empty when a recording starts: the parent's stays as it is, a forked child's is empty, in its place.
 */
#include "base/table.h"

#include <string.h>

#include "check.h"

enum { SIZE = 1 << 20 };

static struct mt_table first, second;
static char *had;

static void in_child(void) {
  for (int i = 0; i < SIZE; i += 4096) CHECK_EQ(had[i], 0);
  char *mine = mt_table_start(&first, SIZE);
  CHECK(mine == had);
  memset(mine, 3, SIZE);
  mine = mt_table_start(&first, SIZE); /* a second recording of the same process */
  CHECK_EQ(mine[0], 0);
  CHECK_EQ(mine[SIZE - 1], 0);
  char *larger = mt_table_start(&second, 2 * SIZE);
  larger[2 * SIZE - 1] = 1;
  CHECK_EQ(larger[0], 0);
}

static void forks(void) {
  had = mt_table_start(&first, SIZE);
  char *other = mt_table_start(&second, SIZE);
  memset(had, 1, SIZE);
  memset(other, 2, SIZE);
  for (int i = 0; i < 2; i++) CHECK_EQ(check_in_child(in_child), 0);
  CHECK_EQ(had[SIZE - 1], 1);
  CHECK_EQ(other[0], 2);
}

static void starts_again(void) {
  char *table = mt_table_start(&first, SIZE);
  memset(table, 1, SIZE);
  table = mt_table_start(&first, SIZE);
  CHECK_EQ(table[0], 0);
  CHECK_EQ(table[SIZE - 1], 0);
  mt_table_end(&first);
  CHECK(!first.at);
}

int main(void) {
  static const struct check_case cases[] = {{"forked children", forks}, {"the same process again", starts_again}};
  return check_main("table", cases, sizeof cases / sizeof *cases);
}
