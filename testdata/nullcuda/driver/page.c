#include "page.h"
#include "context.h"
#include "ipc.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct nc_page *pages;

enum { UNITS = sizeof ((struct nc_page *)0)->used };
#define PAGE_BYTES ((size_t)UNITS * NC_UNIT)

// The first unit of the first run of `count` free ones, or UNITS.
static size_t find_run(const struct nc_page *page, size_t count)
{
	size_t run = 0;
	for (size_t i = 0; i < UNITS; i++) {
		run = page->used[i] ? 0 : run + 1;
		if (run == count)
			return i + 1 - count;
	}
	return UNITS;
}

// The log says 0 requested: the program asked for blocks, not for this.
static cu_result page_new(struct nc_context *context, struct nc_page **out)
{
	struct nc_page *page = calloc(1, sizeof *page);
	void *memory = page ? nc_pages_new(PAGE_BYTES) : NULL;
	cu_result result =
		memory ? nc_ledger_alloc(context->device, NC_PAGE, (uintptr_t)memory, 0, PAGE_BYTES) : CU_OUT_OF_MEMORY;
	if (result != CU_OK) {
		if (memory)
			munmap(memory, PAGE_BYTES);
		free(page);
		return result;
	}
	struct nc_page **link = &pages; // the oldest page is filled first
	while (*link)
		link = &(*link)->next;
	*link = page;
	page->owner = context;
	page->base = (uintptr_t)memory;
	*out = page;
	return CU_OK;
}

cu_result nc_page_alloc(struct nc_context *context, size_t bytes, struct nc_range **out)
{
	size_t size = nc_round_up(bytes, NC_UNIT), count = size / NC_UNIT, at = UNITS;
	struct nc_range *range = calloc(1, sizeof *range);
	if (!range)
		return CU_OUT_OF_MEMORY;
	struct nc_page *page = pages;
	for (; page; page = page->next)
		if (page->owner == context && page->units + count <= UNITS && (at = find_run(page, count)) < UNITS)
			break;
	if (!page) {
		cu_result result = page_new(context, &page);
		if (result != CU_OK) {
			free(range);
			return result;
		}
		at = 0;
	}
	memset(page->used + at, 1, count);
	page->units += count;
	*range = (struct nc_range){
		.base = page->base + at * NC_UNIT, .requested = bytes, .size = size, .kind = NC_DEVICE,
		.device = context->device, .owner = context, .page = page,
	};
	nc_range_insert(range);
	nc_ledger_alloc(range->device, NC_DEVICE, range->base, bytes, 0);
	*out = range;
	return CU_OK;
}

void nc_page_give(const struct nc_range *block)
{
	struct nc_page *page = block->page, **link = &pages;
	memset(page->used + (block->base - page->base) / NC_UNIT, 0, block->size / NC_UNIT);
	page->units -= block->size / NC_UNIT;
	if (page->units)
		return;
	while (*link != page)
		link = &(*link)->next;
	*link = page->next;
	nc_ledger_free(block->device, NC_PAGE, page->base, 0, PAGE_BYTES);
	if (page->ipc)
		nc_ipc_forget(page->ipc);
	munmap((void *)page->base, PAGE_BYTES);
	free(page);
}
