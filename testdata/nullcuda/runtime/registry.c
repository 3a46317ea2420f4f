// Registration runs before main for every kernel of every library (PyTorch: tens
// of thousands), so it only stores pointers; everything else waits for first use.
//
// One open-addressing table of pointers maps host addresses to entries; entries
// live in blocks owned by their fat binary and go with it.
#include "registry.h"
#include "runtime.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BLOCK_ENTRIES = 64, MAX_DEVICES = 64, PAGE = 4096 };

struct entry {
	const void *host;
	struct fatbin *fatbin;
	const char *name;
	void *handle;     // kernel: of the driver; variable: its pages, one stride per device
	size_t size;      // variable, bytes; 0: a kernel
	size_t stride;    // variable, bytes
	void **published; // managed variable: where the program reads its address
};

struct block {
	struct block *next;
	unsigned used;
	struct entry entries[BLOCK_ENTRIES];
};

struct fatbin {
	const void *image;
	void *library; // of the driver, NULL until first use
	struct block *blocks;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct {
	struct entry **slots;
	size_t capacity; // a power of two
	size_t occupied; // live and dead
} table;             // lock
static struct entry dead; // marks slots whose entry is gone

static size_t slot_of(const void *host) { return ((uintptr_t)host >> 4) * 0x9e3779b97f4a7c15u >> 20; }

static struct entry **find_slot(const void *host)
{
	if (!table.capacity)
		return NULL;
	for (size_t i = slot_of(host);; i++) {
		struct entry **slot = &table.slots[i & (table.capacity - 1)];
		if (!*slot || (*slot)->host == host)
			return slot;
	}
}

static bool grow(void)
{
	size_t old_capacity = table.capacity;
	struct entry **old = table.slots;
	size_t capacity = old_capacity ? old_capacity * 2 : 4096;
	struct entry **slots = calloc(capacity, sizeof *slots);
	if (!slots)
		return false;
	table.slots = slots;
	table.capacity = capacity;
	table.occupied = 0;
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i] && old[i] != &dead) {
			*find_slot(old[i]->host) = old[i];
			table.occupied++;
		}
	free(old);
	return true;
}

static void insert(struct fatbin *fatbin, const struct entry *entry)
{
	if (!fatbin || !entry->host)
		return;
	pthread_rwlock_wrlock(&lock);
	if ((table.occupied + 1) * 2 > table.capacity && !grow())
		goto out;
	if (!fatbin->blocks || fatbin->blocks->used == BLOCK_ENTRIES) {
		struct block *block = malloc(sizeof *block);
		if (!block)
			goto out;
		block->used = 0;
		block->next = fatbin->blocks;
		fatbin->blocks = block;
	}
	struct entry **slot = find_slot(entry->host);
	struct entry *stored = &fatbin->blocks->entries[fatbin->blocks->used++];
	*stored = *entry;
	stored->fatbin = fatbin;
	table.occupied += !*slot;
	*slot = stored;
out:
	pthread_rwlock_unlock(&lock);
}

static void release(struct entry *entry)
{
	struct entry **slot = find_slot(entry->host);
	if (*slot == entry)
		*slot = &dead;
	if (entry->size && entry->handle)
		munmap(entry->handle, entry->stride * MAX_DEVICES);
}

// Loads what the entry needs. Two threads may race here; the loser's library is
// unloaded again, so no lock is held over the driver.
static int load_kernel(const void *host, struct rt_kernel *out)
{
	void *library = NULL, *kernel;
	pthread_rwlock_rdlock(&lock);
	struct entry **slot = find_slot(host);
	struct entry entry = slot && *slot && !(*slot)->size ? **slot : (struct entry){0};
	const void *image = entry.fatbin ? entry.fatbin->image : NULL;
	library = entry.fatbin ? entry.fatbin->library : NULL;
	pthread_rwlock_unlock(&lock);
	if (!entry.fatbin)
		return RT_INVALID_DEVICE_FUNCTION;
	bool loaded = !library;
	if (loaded)
		RT_TRY(rt_calls->cuLibraryLoadDataForRegistry(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	int error = rt_calls->cuLibraryGetKernelForRegistry(&kernel, library, entry.name);
	void *surplus = loaded ? library : NULL;
	pthread_rwlock_wrlock(&lock);
	slot = find_slot(host);
	if (error == RT_OK && *slot && (*slot)->fatbin == entry.fatbin) {
		if (loaded && !entry.fatbin->library) {
			entry.fatbin->library = library;
			surplus = NULL;
		}
		if (!surplus)
			(*slot)->handle = kernel;
	}
	pthread_rwlock_unlock(&lock);
	if (surplus) {
		rt_calls->cuLibraryUnloadForRegistry(surplus);
		return error == RT_OK ? load_kernel(host, out) : error;
	}
	*out = (struct rt_kernel){entry.name, kernel};
	return error;
}

int rt_kernel_find(const void *host, struct rt_kernel *out)
{
	pthread_rwlock_rdlock(&lock);
	struct entry **slot = find_slot(host);
	bool ready = slot && *slot && !(*slot)->size && (*slot)->handle;
	if (ready)
		*out = (struct rt_kernel){(*slot)->name, (*slot)->handle};
	pthread_rwlock_unlock(&lock);
	if (ready)
		return RT_OK;
	if (host && !rt_call_known(rt_calls->cuLibraryLoadDataForRegistry))
		return RT_NOT_SUPPORTED;
	return host ? load_kernel(host, out) : RT_INVALID_DEVICE_FUNCTION;
}

// Variables get host pages, one copy per device. They are no part of the
// device's accounts, like code, and kernels never read them.
static bool back(struct entry *entry)
{
	if (entry->handle)
		return true;
	entry->stride = (entry->size + PAGE - 1) / PAGE * PAGE;
	void *pages = mmap(NULL, entry->stride * MAX_DEVICES, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	entry->handle = pages == MAP_FAILED ? NULL : pages;
	return entry->handle;
}

int rt_variable_find(const void *host, struct rt_variable *out)
{
	int device;
	RT_TRY(rt_device_current(&device));
	if (!host || device < 0 || device >= MAX_DEVICES)
		return RT_INVALID_SYMBOL;
	int error = RT_INVALID_SYMBOL;
	pthread_rwlock_wrlock(&lock);
	struct entry **slot = find_slot(host);
	if (slot && *slot && (*slot)->size) {
		error = back(*slot) ? RT_OK : RT_OUT_OF_MEMORY;
		*out = (struct rt_variable){(char *)(*slot)->handle + (*slot)->stride * (size_t)device, (*slot)->size};
		if ((*slot)->published)
			out->address = *(*slot)->published;
	}
	pthread_rwlock_unlock(&lock);
	return error;
}

// The wrapper that the compiler emits around a fat binary.
struct wrapper {
	int magic, version;
	const void *image;
};

RT_EXPORT void **__cudaRegisterFatBinary(void *wrapped)
{
	enum { WRAPPER_MAGIC = 0x466243b1 };
	const struct wrapper *wrapper = wrapped;
	struct fatbin *fatbin = calloc(1, sizeof *fatbin);
	if (fatbin)
		fatbin->image = wrapper && wrapper->magic == WRAPPER_MAGIC ? wrapper->image : wrapped;
	return (void **)fatbin;
}

RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

RT_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	struct fatbin *fatbin = (struct fatbin *)handle;
	if (!fatbin)
		return;
	pthread_rwlock_wrlock(&lock);
	for (struct block *block = fatbin->blocks, *next; block; block = next) {
		next = block->next;
		for (unsigned i = 0; i < block->used; i++)
			release(&block->entries[i]);
		free(block);
	}
	pthread_rwlock_unlock(&lock);
	// The driver's library stays: this runs among exit handlers, when the driver
	// may be gone already.
	free(fatbin);
}

RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                      void *tid, void *bid, rt_dim3 *block, rt_dim3 *grid, int *warp_size)
{
	(void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp_size;
	insert((struct fatbin *)handle, &(struct entry){.host = host, .name = name});
}

RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                                 int constant, int global)
{
	(void)device, (void)external, (void)constant, (void)global;
	if (size && size < (size_t)1 << 40)
		insert((struct fatbin *)handle, &(struct entry){.host = host, .name = name, .size = size});
}

RT_EXPORT void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size)
{
	__cudaRegisterVar(handle, host, NULL, name, 0, size, 0, 0);
}

RT_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
                                        size_t size, int constant, int global)
{
	(void)device, (void)external, (void)constant, (void)global;
	if (!size || size >= (size_t)1 << 40)
		return;
	struct entry entry = {.host = host, .name = name, .size = size, .published = host};
	if (back(&entry))
		*host = entry.handle;
	insert((struct fatbin *)handle, &entry);
}

RT_EXPORT char __cudaInitModule(void **handle)
{
	(void)handle;
	return 0;
}
