// A treap: a search tree by address that is also a heap by a hash of the
// address, which keeps it balanced whatever the order of insertion.
#include "range.h"
#include "page.h"

static struct nc_range *root;
static uint64_t last_buffer_id;

static uint64_t priority_of(cu_ptr address)
{
	uint64_t x = address >> 9;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

// Splits a tree into the ranges below the address and those from it on.
static void split(struct nc_range *tree, cu_ptr address, struct nc_range **below, struct nc_range **from)
{
	while (tree) {
		if (tree->base < address) {
			*below = tree;
			below = &tree->right;
			tree = tree->right;
		} else {
			*from = tree;
			from = &tree->left;
			tree = tree->left;
		}
	}
	*below = *from = NULL;
}

static struct nc_range *merge(struct nc_range *low, struct nc_range *high)
{
	struct nc_range *tree, **link = &tree;
	while (low && high) {
		if (low->priority > high->priority) {
			*link = low;
			link = &low->right;
			low = low->right;
		} else {
			*link = high;
			link = &high->left;
			high = high->left;
		}
	}
	*link = low ? low : high;
	return tree;
}

void nc_range_insert(struct nc_range *range)
{
	struct nc_range **link = &root;
	range->priority = priority_of(range->base);
	range->buffer_id = ++last_buffer_id;
	while (*link && (*link)->priority >= range->priority)
		link = range->base < (*link)->base ? &(*link)->left : &(*link)->right;
	split(*link, range->base, &range->left, &range->right);
	*link = range;
}

void nc_range_remove(struct nc_range *range)
{
	struct nc_range **link = &root;
	while (*link != range)
		link = range->base < (*link)->base ? &(*link)->left : &(*link)->right;
	*link = merge(range->left, range->right);
}

// The range with the greatest base not above the address.
static struct nc_range *nc_range_floor(cu_ptr address)
{
	struct nc_range *best = NULL;
	for (struct nc_range *range = root; range;) {
		if (range->base <= address) {
			best = range;
			range = range->right;
		} else {
			range = range->left;
		}
	}
	return best;
}

struct nc_range *nc_range_at(cu_ptr address)
{
	struct nc_range *range = nc_range_floor(address);
	return range && address - range->base < range->size ? range : NULL;
}

struct nc_range *nc_range_based(cu_ptr address)
{
	struct nc_range *range = nc_range_floor(address);
	return range && range->base == address ? range : NULL;
}

struct nc_range *nc_range_after(cu_ptr address)
{
	struct nc_range *best = NULL;
	for (struct nc_range *range = root; range;) {
		if (range->base + range->size > address) {
			best = range;
			range = range->left;
		} else {
			range = range->right;
		}
	}
	return best;
}

bool nc_range_is_shared(const struct nc_range *range)
{
	return range->shared || (range->page && range->page->ipc);
}

bool nc_range_accessible(const struct nc_range *range)
{
	if (range->kind != NC_VMM)
		return true;
	for (int device = 0; device < NC_MAX_DEVICES; device++)
		if (range->access[device] == CU_ACCESS_READ_WRITE)
			return true;
	return false;
}

bool nc_range_covers(cu_ptr address, size_t bytes)
{
	while (bytes) {
		struct nc_range *range = nc_range_at(address);
		if (!range || !nc_range_accessible(range))
			return false;
		size_t here = range->base + range->size - address;
		if (bytes <= here)
			return true;
		address += here;
		bytes -= here;
	}
	return true;
}

void nc_range_sweep(struct nc_context *owner, void (*destroy)(struct nc_range *range))
{
	cu_ptr address = 0;
	for (struct nc_range *range; (range = nc_range_after(address));) {
		address = range->base + range->size;
		if (range->owner == owner)
			destroy(range);
	}
}
