// Fills. Clearing whole pages gives the pages back instead of writing them, so
// that a framework clearing gigabytes it never uses costs no memory.
#include "copy.h"
#include "range.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, DISCARD_MIN = 16 * PAGE };

// Writes zeros to the run of bytes. Whole pages of memory that this library
// mapped are discarded; they read as zeros again.
static void clear(char *start, size_t bytes)
{
	char *end = start + bytes;
	char *first = (char *)nc_round_up((uintptr_t)start, PAGE), *last = (char *)((uintptr_t)end / PAGE * PAGE);
	pthread_mutex_lock(&nc_lock);
	struct nc_range *range = nc_range_at((uintptr_t)start);
	bool whole = range && !range->registered && (uintptr_t)end <= range->base + range->size;
	bool shared = whole && nc_range_is_shared(range);
	pthread_mutex_unlock(&nc_lock);
	if (!whole || end - start < DISCARD_MIN ||
		madvise(first, (size_t)(last - first), shared ? MADV_REMOVE : MADV_DONTNEED)) {
		memset(start, 0, bytes);
		return;
	}
	memset(start, 0, (size_t)(first - start));
	memset(last, 0, (size_t)(end - last));
}

static void fill_row(char *row, const cu_memset_node *fill)
{
	size_t bytes = fill->width * fill->element_size;
	if (fill->value == 0) {
		clear(row, bytes);
		return;
	}
	switch (fill->element_size) {
	case 1:
		memset(row, (int)fill->value, bytes);
		break;
	case 2:
		for (size_t i = 0; i < fill->width; i++)
			((uint16_t *)row)[i] = (uint16_t)fill->value;
		break;
	default:
		for (size_t i = 0; i < fill->width; i++)
			((uint32_t *)row)[i] = fill->value;
	}
}

cu_result nc_fill_run(const cu_memset_node *fill)
{
	if (!fill->width || !fill->height)
		return CU_OK;
	size_t element = fill->element_size;
	if ((element != 1 && element != 2 && element != 4) || fill->dst % element || fill->width > NC_SIZE_MAX / element)
		return CU_INVALID_VALUE;
	size_t row = fill->width * element;
	if (fill->height > 1 && (fill->pitch < row || fill->pitch % element || fill->pitch > NC_SIZE_MAX))
		return CU_INVALID_VALUE;
	__uint128_t span = (__uint128_t)(fill->height - 1) * fill->pitch + row;
	if (span > NC_SIZE_MAX)
		return CU_INVALID_VALUE;
	pthread_mutex_lock(&nc_lock);
	bool usable = nc_range_covers(fill->dst, (size_t)span);
	pthread_mutex_unlock(&nc_lock);
	if (!usable)
		return CU_INVALID_VALUE;
	for (size_t y = 0; y < fill->height; y++)
		fill_row((char *)fill->dst + y * fill->pitch, fill);
	return CU_OK;
}
