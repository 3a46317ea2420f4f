#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "spool.h"

/* One flag per table, set on first use in this process; on a MADV_WIPEONFORK page, as the tables are. NULL: not
 * allocated yet, or the kernel lacks MADV_WIPEONFORK (Linux 4.14). */
static bool *used;

static bool wiped_in_children(void *at, size_t size) { return !mt_sys_madvise(at, size, MADV_WIPEONFORK); }

static bool find_used(void) {
  if (used) return true;
  void *page = mt_sys_pages_alloc(MT_PAGE);
  if (page && wiped_in_children(page, MT_PAGE)) return used = page, true;
  if (page) mt_sys_pages_free(page, MT_PAGE);
  return false;
}

void mt_table_end(struct mt_table *table) {
  if (table->at) mt_sys_pages_free(table->at, table->size);
  table->at = NULL;
}

void *mt_table_start(struct mt_table *table, size_t size) {
  static unsigned numbers;
  bool untouched = table->at && table->number && !used[table->number] && table->size == size;
  if (!untouched) {
    mt_table_end(table);
    table->at = mt_sys_pages_alloc(size);
    table->size = size;
    if (!table->at) return NULL;
    if (!find_used() || !wiped_in_children(table->at, size)) return table->number = 0, table->at;
    if (!table->number && numbers < MT_PAGE - 1) table->number = ++numbers;
  }
  if (table->number) used[table->number] = true;
  return table->at;
}
