// What dies without a free of its own: with its context (destroyed, detached, reset or
// released for the last time), its module, its library or its pool. Every block that
// dies has its line in the log, and those that belong to the device or the process have
// none until they are freed.
#include "cu.h"

#include <sys/mman.h>

int cuLibraryGetGlobal(cu_ptr *address, size_t *bytes, void *library, const char *name);
int cuLibraryGetManaged(cu_ptr *address, size_t *bytes, void *library, const char *name);
int cuDevicePrimaryCtxReset(int device);
int cuDevicePrimaryCtxRelease(int device);
int cuCtxDestroy(void *context);

static FILE *log_file;

// How many blocks of each kind lived at the end of what was read so far.
static const char *const kinds[] = {
	"device", "managed", "host", "array", "sparse", "module", "ipc", "context", "async", "pool", "vmm"};
enum { DEVICE, MANAGED, HOST, ARRAY, SPARSE, MODULE, IPC, CONTEXT, ASYNC, POOL, VMM, KINDS };
static int live[KINDS];

static void read_on(void)
{
	struct log_line line;
	clearerr(log_file);
	while (read_log(log_file, &line))
		for (int i = 0; i < KINDS; i++)
			if (strcmp(line.kind, kinds[i]) == 0)
				live[i] += strcmp(line.op, "alloc") == 0 ? 1 : strcmp(line.op, "free") == 0 ? -1 : 0;
}

struct made {
	void *library, *pool;
	cu_ptr async, graph_memory;
	uint64_t handle;
};

static char own[100];

// One block of every kind in the current context.
static struct made make_all(void)
{
	struct made made;
	cu_ptr a, managed, pitched, global;
	size_t pitch;
	void *pinned, *array, *mipmap, *sparse, *module, *memory, *graph, *node, *exec;
	const cu_array_desc flat = {100, 100, 0x20, 1};
	const cu_array3d_desc levels = {64, 64, 0, 0x20, 1, 0}, tiles = {512, 512, 0, 0x20, 1, CU_ARRAY_SPARSE};
	const cu_allocation_prop on_device = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
	const cu_pool_props props = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
	const cu_external_buffer part = {.size = 4096};
	cu_external_memory desc = {.type = CU_EXTERNAL_OPAQUE_FD, .fd = memfd_create("other", MFD_CLOEXEC), .size = 4096};
	cu_alloc_node alloc = {.pool = props, .size = 1000};
	CHECK_EQ(ftruncate(desc.fd, 4096), 0);
	CHECK_OK(cuMemAlloc_v2(&a, 1000));
	CHECK_OK(cuMemAllocPitch_v2(&pitched, &pitch, 100, 10, 4));
	CHECK_OK(cuMemAllocManaged(&managed, 1000, 1));
	CHECK_OK(cuMemHostAlloc(&pinned, 1000, 0));
	CHECK_OK(cuMemHostRegister_v2(own, sizeof own, 0));
	CHECK_OK(cuArrayCreate_v2(&array, &flat));
	CHECK_OK(cuMipmappedArrayCreate(&mipmap, &levels, 3));
	CHECK_OK(cuArray3DCreate_v2(&sparse, &tiles));
	CHECK_OK(cuModuleLoadData(&module, "image"));
	CHECK_OK(cuModuleGetGlobal_v2(&global, NULL, module, "table"));
	CHECK_OK(cuLibraryLoadData(&made.library, "image", NULL, NULL, 0, NULL, NULL, 0));
	CHECK_OK(cuLibraryGetGlobal(&global, NULL, made.library, "table"));
	CHECK_OK(cuLibraryGetManaged(&global, NULL, made.library, "shared"));
	CHECK_OK(cuImportExternalMemory(&memory, &desc));
	CHECK_OK(cuExternalMemoryGetMappedBuffer(&a, memory, &part));
	CHECK_OK(cuMemPoolCreate(&made.pool, &props));
	CHECK_OK(cuMemAllocFromPoolAsync(&made.async, 1000, made.pool, NULL));
	CHECK_OK(cuMemCreate(&made.handle, 2 * MIB, &on_device, 0));
	CHECK_OK(cuGraphCreate(&graph, 0));
	CHECK_OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &alloc));
	CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_OK(cuGraphLaunch(exec, NULL));
	CHECK_OK(cuGraphExecDestroy(exec)); // what a graph allocated outlives it
	CHECK_OK(cuGraphDestroy(graph));
	made.graph_memory = alloc.address;
	read_on();
	const int expected[KINDS] = {[DEVICE] = 2,
		[MANAGED] = 2,
		[HOST] = 2,
		[ARRAY] = 2,
		[SPARSE] = 1,
		[MODULE] = 2,
		[IPC] = 1,
		[CONTEXT] = live[CONTEXT],
		[ASYNC] = 2,
		[POOL] = 2,
		[VMM] = 1};
	for (int i = 0; i < KINDS; i++)
		CHECK_EQ(live[i], expected[i]);
	return made;
}

// The context of `made` is gone; a keeper is left, in which the rest is freed.
static void check_and_end(const struct made *made, int contexts)
{
	const int expected[KINDS] = {[CONTEXT] = contexts, [ASYNC] = 2, [POOL] = 2, [VMM] = 1};
	cu_ptr global;
	read_on();
	for (int i = 0; i < KINDS; i++)
		CHECK_EQ(live[i], expected[i]);
	// The library stays, and its variables come anew in another context.
	CHECK_OK(cuLibraryGetGlobal(&global, NULL, made->library, "table"));
	CHECK_OK(cuMemsetD8_v2(global, 1, 100));
	read_on();
	CHECK_EQ(live[MODULE], 1);
	CHECK_OK(cuLibraryUnload(made->library));
	read_on();
	CHECK_EQ(live[MODULE], 0);
	CHECK_OK(cuMemPoolDestroy(made->pool)); // holds a block: lives on
	read_on();
	CHECK_EQ(live[POOL], 2);
	CHECK_OK(cuMemsetD8_v2(made->async, 1, 1000));
	CHECK_OK(cuMemFreeAsync(made->async, NULL));
	read_on();
	CHECK_EQ(live[POOL], 1); // ended with its last block
	CHECK_OK(cuMemFree_v2(made->graph_memory));
	CHECK_OK(cuDeviceGraphMemTrim(0));
	CHECK_OK(cuMemRelease(made->handle));
	read_on();
	const int rest[KINDS] = {[CONTEXT] = contexts};
	for (int i = 0; i < KINDS; i++)
		CHECK_EQ(live[i], rest[i]);
}

int main(void)
{
	void *keeper, *context, *module;
	cu_ptr global;
	struct made made;
	setenv("NULLCUDA_SHARED", "none", 1);
	setenv("NULLCUDA_CONTEXT", "10M", 1);
	log_file = fopen(log_to_file(), "r");
	CHECK(log_file != NULL);
	CHECK_OK(cuInit(0));
	CHECK_OK(cuCtxCreate_v2(&keeper, 0, 0));

	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	made = make_all();
	CHECK_OK(cuCtxDestroy_v2(context));
	check_and_end(&made, 1);

	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	made = make_all();
	CHECK_OK(cuCtxDestroy(context)); // the first version
	check_and_end(&made, 1);

	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	made = make_all();
	CHECK_OK(cuCtxDetach(context));
	check_and_end(&made, 1);

	int (*const ends[])(int) = {
		cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease};
	for (int i = 0; i < 4; i++) {
		CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
		CHECK_OK(cuCtxPushCurrent_v2(context));
		made = make_all();
		CHECK_OK(ends[i](0));
		CHECK_OK(cuCtxPopCurrent_v2(NULL));
		if (i < 2)
			CHECK_OK(cuDevicePrimaryCtxRelease_v2(0)); // a reset does not
		check_and_end(&made, 1);
	}

	CHECK_OK(cuModuleLoadData(&module, "image"));
	CHECK_OK(cuModuleGetGlobal_v2(&global, NULL, module, "a"));
	CHECK_OK(cuModuleGetGlobal_v2(&global, NULL, module, "b"));
	read_on();
	CHECK_EQ(live[MODULE], 2);
	CHECK_OK(cuModuleUnload(module));
	read_on();
	CHECK_EQ(live[MODULE], 0);
	CHECK_OK(cuCtxDestroy_v2(keeper));
	read_on();
	for (int i = 0; i < KINDS; i++)
		CHECK_EQ(live[i], 0);
	fclose(log_file);
	return check_done("driver_implicit");
}
