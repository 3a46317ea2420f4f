// cuGetProcAddress, and the functions that exist only as an answer.
#include "driver.h"

#include <string.h>

// Each row of entries.def declares its symbol; those that do nothing are also
// defined here, one function per name, so that no two names share an address.
#define IMPLEMENTED(base, version, symbol) cu_result symbol();
#define PER_THREAD(base, version, symbol, target) cu_result symbol();
#define ACCEPTED(base, version, symbol) \
	CU_API symbol(void) { NC_TRY(nc_init_check()); return CU_OK; }
#define REFUSED(base, version, symbol) \
	CU_API symbol(void) { NC_TRY(nc_init_check()); return CU_NOT_SUPPORTED; }
#define LEGACY(base, version, symbol) REFUSED(base, version, symbol)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include "entries.def"
#pragma GCC diagnostic pop
#undef IMPLEMENTED
#undef PER_THREAD
#undef ACCEPTED
#undef REFUSED
#undef LEGACY

// A per-thread variant is a function of its own that continues in the common
// one: a stream handle of 0 is then this thread's stream, which behaves the same.
#if defined(__x86_64__)
#define JUMP "jmp "
#elif defined(__aarch64__)
#define JUMP "b "
#else
#error "no tail jump for this machine"
#endif
#define IMPLEMENTED(base, version, symbol)
#define ACCEPTED(base, version, symbol)
#define REFUSED(base, version, symbol)
#define LEGACY(base, version, symbol)
#define PER_THREAD(base, version, symbol, target)       \
	__asm__(".text\n"                               \
	        ".p2align 4\n"                          \
	        ".globl " #symbol "\n"                  \
	        ".type " #symbol ",%function\n"         \
	        #symbol ":\n"                           \
	        "\t" JUMP #target "\n"                  \
	        ".size " #symbol ",.-" #symbol "\n");
#include "entries.def"
#undef IMPLEMENTED
#undef PER_THREAD
#undef ACCEPTED
#undef REFUSED
#undef LEGACY

struct entry {
	const char *base;
	int version; // the CUDA version that introduced this ABI of the name
	bool per_thread;
	void *function;
};

#define IMPLEMENTED(base, version, symbol) {base, version, false, (void *)symbol},
#define PER_THREAD(base, version, symbol, target) {base, version, true, (void *)symbol},
#define ACCEPTED(base, version, symbol) IMPLEMENTED(base, version, symbol)
#define REFUSED(base, version, symbol) IMPLEMENTED(base, version, symbol)
#define LEGACY(base, version, symbol) IMPLEMENTED(base, version, symbol)
// Sorted by base, so that the rows of one name are together.
static const struct entry entries[] = {
#include "entries.def"
};
enum { ENTRIES = sizeof entries / sizeof *entries };

enum { FLAG_LEGACY_STREAM = 1, FLAG_PER_THREAD_STREAM = 2 };
enum { FOUND = 0, SYMBOL_NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };

// The first row of the name, or ENTRIES.
static size_t first_row(const char *base)
{
	size_t low = 0, high = ENTRIES;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(entries[middle].base, base) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ENTRIES && strcmp(entries[low].base, base) == 0 ? low : ENTRIES;
}

// The newest ABI of the name that `version` knows. Per-thread rows are preferred
// when asked for and ignored otherwise. A name newer than the driver that we play
// does not exist.
static int look_up(const char *base, int version, bool per_thread, void **function)
{
	const struct entry *best = NULL;
	int status = SYMBOL_NOT_FOUND;
	for (size_t i = first_row(base); i < ENTRIES && strcmp(entries[i].base, base) == 0; i++) {
		const struct entry *entry = &entries[i];
		if (entry->version > nc_config()->driver_version || (entry->per_thread && !per_thread))
			continue;
		status = VERSION_NOT_SUFFICIENT;
		if (entry->version > version)
			continue;
		if (!best || entry->per_thread > best->per_thread ||
		    (entry->per_thread == best->per_thread && entry->version > best->version))
			best = entry;
	}
	*function = best ? best->function : NULL;
	return best ? FOUND : status;
}

cu_result cuGetProcAddress_v2(const char *base, void **function, int version, uint64_t flags, int *status);

static cu_result find(const char *base, void **function, int version, uint64_t flags, int *status)
{
	if (!base || !function || flags & ~(uint64_t)(FLAG_LEGACY_STREAM | FLAG_PER_THREAD_STREAM) ||
	    flags == (FLAG_LEGACY_STREAM | FLAG_PER_THREAD_STREAM))
		return CU_INVALID_VALUE;
	if (version > nc_config()->driver_version)
		return CU_INVALID_VALUE;
	*status = look_up(base, version, flags == FLAG_PER_THREAD_STREAM, function);
	return CU_OK;
}

// As of CUDA 12 an unknown name is no error of the call: the function is NULL and
// the status says why.
CU_API cuGetProcAddress_v2(const char *base, void **function, int version, uint64_t flags, int *status)
{
	int found;
	NC_TRY(find(base, function, version, flags, &found));
	if (status)
		*status = found;
	return CU_OK;
}

// CUDA 11 had no status to report by and returns CU_NOT_FOUND.
CU_API cuGetProcAddress(const char *base, void **function, int version, uint64_t flags)
{
	int found;
	NC_TRY(find(base, function, version, flags, &found));
	return found == FOUND ? CU_OK : CU_NOT_FOUND;
}

// The undocumented tables of the vendor's runtime are not there.
CU_API cuGetExportTable(const void **table, const cu_uuid *id)
{
	(void)id;
	if (table)
		*table = NULL;
	return CU_NOT_FOUND;
}
