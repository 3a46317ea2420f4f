#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "spool.h"

/* Which tables have served in this process, by their numbers: on a page that is wiped as they are. NULL: not asked for
 * yet, or the kernel wipes nothing. */
static bool *served;

static bool wiped_in_children(void *at, size_t size) { return !mt_sys_madvise(at, size, MADV_WIPEONFORK); }

static bool find_served(void) {
  if (served) return true;
  void *page = mt_sys_pages(MT_PAGE);
  if (page && wiped_in_children(page, MT_PAGE)) return served = page, true;
  if (page) mt_sys_pages_back(page, MT_PAGE);
  return false;
}

void mt_table_end(struct mt_table *table) {
  if (table->at) mt_sys_pages_back(table->at, table->size);
  table->at = NULL;
}

void *mt_table_start(struct mt_table *table, size_t size) {
  static unsigned numbers;
  bool as_new = table->at && table->number && !served[table->number] && table->size == size;
  if (!as_new) {
    mt_table_end(table);
    table->at = mt_sys_pages(size);
    table->size = size;
    if (!table->at) return NULL;
    if (!find_served() || !wiped_in_children(table->at, size)) return table->number = 0, table->at;
    if (!table->number && numbers < MT_PAGE - 1) table->number = ++numbers;
  }
  if (table->number) served[table->number] = true;
  return table->at;
}
