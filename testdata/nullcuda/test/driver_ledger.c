// The limits of a device and the NULLCUDA_LOG oracle: every line is checked
// against an account kept here, which does not look at the driver's.
#include "cu.h"


// Out of memory comes exactly at the size of the device, of every kind.
static void test_limits(void)
{
	cu_ptr most, more, async;
	uint64_t handle;
	void *array, *pinned;
	const cu_allocation_prop prop = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
	const cu_array_desc desc = {1024, 1024, 0x20, 1};
	CHECK_EQ(cuMemAlloc_v2(&most, 64 * MIB + 1), CU_OUT_OF_MEMORY);
	CHECK_OK(cuMemAlloc_v2(&most, 64 * MIB));
	CHECK_EQ(used_now(), 64 * MIB);
	CHECK_EQ(cuMemAlloc_v2(&more, 1), CU_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAllocAsync(&async, 1, NULL), CU_OUT_OF_MEMORY);
	CHECK_EQ(cuMemCreate(&handle, 2 * MIB, &prop, 0), CU_OUT_OF_MEMORY);
	CHECK_EQ(cuArrayCreate_v2(&array, &desc), CU_OUT_OF_MEMORY);
	CHECK_OK(cuMemAllocManaged(&more, 100 * MIB, 1)); // may exceed the device
	CHECK_OK(cuMemFree_v2(more));
	CHECK_OK(cuMemHostAlloc(&pinned, 100 * MIB, 0));
	CHECK_OK(cuMemFreeHost(pinned));
	CHECK_OK(cuMemFree_v2(most));
	CHECK_OK(cuMemAlloc_v2(&most, 60 * MIB));
	// 4 MiB are left: the pool takes a chunk smaller than its usual 32 MiB.
	CHECK_OK(cuMemAllocAsync(&async, 3 * MIB, NULL));
	CHECK_EQ(used_now(), 64 * MIB);
	CHECK_OK(cuMemFreeAsync(async, NULL));
	CHECK_OK(cuMemFree_v2(most));
	CHECK_OK(cuCtxSynchronize());
	CHECK_EQ(used_now(), 0);
}

// A reserve with room, but not in one piece, is given up for a larger chunk.
static void test_pool_makes_room_for_itself(void)
{
	void *pool;
	uint64_t keep = UINT64_MAX;
	cu_ptr small, large;
	CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK_OK(cuMemPoolSetAttribute(pool, 4, &keep));
	CHECK_OK(cuMemAllocAsync(&small, 30 * MIB, NULL));
	CHECK_OK(cuMemFreeAsync(small, NULL));
	CHECK_EQ(used_now(), 32 * MIB);
	CHECK_OK(cuMemAllocAsync(&large, 50 * MIB, NULL));
	CHECK_OK(cuMemFreeAsync(large, NULL));
	keep = 0;
	CHECK_OK(cuMemPoolSetAttribute(pool, 4, &keep));
	CHECK_OK(cuCtxSynchronize());
	CHECK_EQ(used_now(), 0);
}

// Work of every kind for the log.
static void make_history(void)
{
	cu_ptr a, b, managed, async, global, va;
	void *pinned, *array, *module;
	uint64_t handle;
	static char own[100];
	const cu_allocation_prop prop = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
	const cu_array_desc desc = {10, 10, 0x20, 1};
	CHECK_OK(cuMemAlloc_v2(&a, 1000));
	CHECK_OK(cuMemAllocManaged(&managed, 3000, 1));
	CHECK_OK(cuMemHostAlloc(&pinned, 4000, 0));
	CHECK_OK(cuMemHostRegister_v2(own, 100, 0));
	CHECK_OK(cuMemAllocAsync(&async, 5000, NULL));
	CHECK_OK(cuArrayCreate_v2(&array, &desc));
	CHECK_OK(cuModuleLoadData(&module, "image"));
	CHECK_OK(cuModuleGetGlobal_v2(&global, NULL, module, "g"));
	CHECK_OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	CHECK_OK(cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
	CHECK_OK(cuMemMap(va, 2 * MIB, 0, handle, 0));
	CHECK_OK(cuMemRelease(handle));
	CHECK_EQ(cuMemAlloc_v2(&b, GIB), CU_OUT_OF_MEMORY);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuMemFree_v2(managed));
	CHECK_OK(cuMemFreeHost(pinned));
	CHECK_OK(cuMemHostUnregister(own));
	CHECK_OK(cuMemFreeAsync(async, NULL));
	CHECK_OK(cuArrayDestroy(array));
	CHECK_OK(cuModuleUnload(module));
	CHECK_OK(cuMemUnmap(va, 2 * MIB));
	CHECK_OK(cuMemAddressFree(va, 2 * MIB));
	CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
}

// The documented expectation of the history: kind, op, requested, charged.
static const struct {
	const char *kind, *op;
	ull requested, charged;
} expected[] = {
	{"context", "alloc", 3 * MIB, 3 * MIB},
	{"device", "alloc", 1000, 1024},
	{"managed", "alloc", 3000, 3072},
	{"host", "alloc", 4000, 4096},
	{"host", "alloc", 100, 100},
	{"pool", "alloc", 32 * MIB, 32 * MIB},
	{"async", "alloc", 5000, 5120},
	{"array", "alloc", 400, 512},
	{"module", "alloc", 64 * KIB, 64 * KIB},
	{"vmm", "alloc", 2 * MIB, 2 * MIB},
	{"device", "oom", GIB, GIB},
	{"device", "free", 1000, 1024},
	{"managed", "free", 3000, 3072},
	{"host", "free", 4000, 4096},
	{"host", "free", 100, 100},
	{"async", "free", 5000, 5120},
	{"array", "free", 400, 512},
	{"module", "free", 64 * KIB, 64 * KIB},
	{"vmm", "free", 2 * MIB, 2 * MIB},
	{"pool", "free", 32 * MIB, 32 * MIB},
	{"context", "free", 3 * MIB, 3 * MIB},
};

static int occupies(const char *kind)
{
	return strcmp(kind, "managed") && strcmp(kind, "host") && strcmp(kind, "async") && strcmp(kind, "ipc");
}

static void check_log(FILE *log)
{
	struct log_line line;
	ull sequence = 0, time = 0, requested = 0, charged = 0;
	size_t i = 0;
	const size_t count = sizeof expected / sizeof *expected;
	while (read_log(log, &line)) {
		CHECK_EQ(line.sequence, ++sequence);
		CHECK(line.time >= time);
		time = line.time;
		if (occupies(line.kind) && strcmp(line.op, "alloc") == 0)
			requested += line.requested, charged += line.charged;
		if (occupies(line.kind) && strcmp(line.op, "free") == 0)
			requested -= line.requested, charged -= line.charged;
		CHECK_EQ(line.live_requested, requested);
		CHECK_EQ(line.live_charged, charged);
		if (i >= count)
			break;
		int as_expected = strcmp(line.kind, expected[i].kind) == 0 && strcmp(line.op, expected[i].op) == 0;
		CHECK(as_expected);
		CHECK_EQ(line.requested, expected[i].requested);
		CHECK_EQ(line.charged, expected[i].charged);
		CHECK_EQ(line.address != 0, strcmp(line.op, "oom") != 0);
		i++;
	}
	CHECK_EQ(i, count);
	CHECK_EQ(charged, 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	void *context;
	setenv("NULLCUDA_SHARED", "none", 1);
	if (!getenv("NULLCUDA_LOG")) {
		setenv("NULLCUDA_MEM", "64M", 1);
		start();
		test_limits();
		test_pool_makes_room_for_itself();
		if (check_done("driver_ledger, limits"))
			return 1;
		fflush(stdout);
		// The configuration is read once, so the log needs a process of its own.
		char path[] = "/tmp/nullcuda-test-XXXXXX", pattern[64];
		close(mkstemp(path));
		unlink(path);
		snprintf(pattern, sizeof pattern, "%s.%%p", path);
		setenv("NULLCUDA_LOG", pattern, 1);
		setenv("NULLCUDA_CONTEXT", "3M", 1);
		execv("/proc/self/exe", argv);
		perror("/proc/self/exe");
		return 1;
	}
	CHECK_OK(cuInit(0));
	CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK_OK(cuCtxSetCurrent(context));
	make_history();
	char path[64];
	snprintf(path, sizeof path, "%.*s%d", (int)strcspn(getenv("NULLCUDA_LOG"), "%"), getenv("NULLCUDA_LOG"), getpid());
	FILE *log = fopen(path, "r");
	CHECK(log != NULL); // %p became the pid
	if (log) {
		check_log(log);
		fclose(log);
	}
	unlink(path);
	return check_done("driver_ledger, log");
}
