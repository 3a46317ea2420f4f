// cuGetProcAddress: names, versions, flags, and the errors of both versions of it.
#include "cu.h"

#include <dlfcn.h>

static void *library;

static void *symbol(const char *name)
{
	void *found = dlsym(library, name);
	CHECK(found != NULL);
	return found;
}

// What the name and version give: the function, or NULL with the status.
static void *get(const char *name, int version, uint64_t flags, int *status)
{
	void *function = &function;
	*status = -1;
	CHECK_OK(cuGetProcAddress_v2(name, &function, version, flags, status));
	return function;
}

static void test_versions(void)
{
	int status;
	const struct {
		const char *name;
		int version;
		uint64_t flags;
		const char *symbol;
	} cases[] = {
		{"cuMemAlloc", 12000, 0, "cuMemAlloc_v2"},
		{"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
		{"cuMemAlloc", 3010, 0, "cuMemAlloc"},
		{"cuMemAlloc", 12000, 2, "cuMemAlloc_v2"}, // has no per-thread variant
		{"cuInit", 2000, 0, "cuInit"},
		{"cuCtxCreate", 3020, 0, "cuCtxCreate_v2"},
		{"cuCtxCreate", 11040, 0, "cuCtxCreate_v3"},
		{"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
		{"cuMemcpyHtoD", 12000, 0, "cuMemcpyHtoD_v2"},
		{"cuMemcpyHtoD", 12000, 1, "cuMemcpyHtoD_v2"},
		{"cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds"},
		{"cuMemcpyHtoD", 3020, 2, "cuMemcpyHtoD_v2"}, // older than its per-thread variant
		{"cuMemcpyAsync", 7000, 2, "cuMemcpyAsync_ptsz"},
		{"cuMemAllocAsync", 11020, 0, "cuMemAllocAsync"},
		{"cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz"},
		{"cuMemAllocFromPoolAsync", 12000, 2, "cuMemAllocFromPoolAsync_ptsz"},
		{"cuMemFreeAsync", 12000, 2, "cuMemFreeAsync_ptsz"},
		{"cuStreamGetCaptureInfo", 10010, 0, "cuStreamGetCaptureInfo"},
		{"cuStreamGetCaptureInfo", 12000, 0, "cuStreamGetCaptureInfo_v2"},
		{"cuStreamGetCaptureInfo", 12030, 2, "cuStreamGetCaptureInfo_v3_ptsz"},
		{"cuMemPrefetchAsync", 8000, 0, "cuMemPrefetchAsync"},
		{"cuMemPrefetchAsync", 13000, 0, "cuMemPrefetchAsync_v2"},
		{"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
		{"cuGetProcAddress", 11080, 0, "cuGetProcAddress"},
		{"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
		{"cuIpcOpenMemHandle", 11000, 0, "cuIpcOpenMemHandle_v2"},
		{"cuGraphInstantiate", 10000, 0, "cuGraphInstantiate"},
		{"cuGraphInstantiate", 11000, 0, "cuGraphInstantiate_v2"},
		{"cuGraphInstantiate", 12000, 0, "cuGraphInstantiateWithFlags"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		void *function = get(cases[i].name, cases[i].version, cases[i].flags, &status);
		if (function != symbol(cases[i].symbol) || status != 0)
			fprintf(stderr, "case %s %d flags %d\n", cases[i].name, cases[i].version, (int)cases[i].flags);
		CHECK(function == dlsym(library, cases[i].symbol));
		CHECK_EQ(status, 0);
	}
}

static void test_errors(void)
{
	void *function = &function;
	int status;
	CHECK(get("cuNoSuchFunction", 12000, 0, &status) == NULL);
	CHECK_EQ(status, 1);
	CHECK(get("cuMemAlloc_v2", 12000, 0, &status) == NULL); // not a base name
	CHECK_EQ(status, 1);
	CHECK(get("cuMemAllocAsync", 11010, 0, &status) == NULL);
	CHECK_EQ(status, 2);
	CHECK(get("", 12000, 0, &status) == NULL);
	CHECK_EQ(status, 1);
	// Version 1 has no status and reports by its result.
	CHECK_EQ(cuGetProcAddress("cuNoSuchFunction", &function, 11030, 0), CU_NOT_FOUND);
	CHECK(function == NULL);
	CHECK_EQ(cuGetProcAddress("cuMemAllocAsync", &function, 11010, 0), CU_NOT_FOUND);
	CHECK_OK(cuGetProcAddress("cuMemAllocAsync", &function, 11030, 0));
	CHECK(function == symbol("cuMemAllocAsync"));
	CHECK_OK(cuGetProcAddress_v2("cuInit", &function, 12000, 0, NULL));
	CHECK_EQ(cuGetProcAddress_v2("cuInit", &function, 12000, 3, &status), CU_INVALID_VALUE);
	CHECK_EQ(cuGetProcAddress_v2("cuInit", &function, 12000, 4, &status), CU_INVALID_VALUE);
	CHECK_EQ(cuGetProcAddress_v2(NULL, &function, 12000, 0, &status), CU_INVALID_VALUE);
	CHECK_EQ(cuGetProcAddress_v2("cuInit", NULL, 12000, 0, &status), CU_INVALID_VALUE);
	CHECK_EQ(cuGetProcAddress_v2("cuInit", &function, 12100, 0, &status), CU_INVALID_VALUE); // newer than the driver
}

// This test plays a driver of CUDA 12.2: what came later does not exist.
static void test_driver_version(void)
{
	int version, status;
	CHECK_OK(cuDriverGetVersion(&version));
	CHECK_EQ(version, 12020);
	CHECK(get("cuMemGetMemPool", 12020, 0, &status) == NULL); // 13.0
	CHECK_EQ(status, 1);
	CHECK(get("cuGraphAddNode", 12020, 0, &status) == symbol("cuGraphAddNode")); // _v2 is 12.3
}

// The per-thread variants are functions of their own that do the same.
static void test_per_thread_variants_work(void)
{
	cu_ptr a;
	int status;
	void *context;
	CHECK_OK(cuInit(0));
	CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK_OK(cuCtxSetCurrent(context));
	int (*alloc)(cu_ptr *, size_t, void *) = get("cuMemAllocAsync", 12000, 2, &status);
	int (*release)(cu_ptr, void *) = get("cuMemFreeAsync", 12000, 2, &status);
	CHECK((void *)alloc != (void *)cuMemAllocAsync);
	CHECK_OK(alloc(&a, 1000, NULL));
	CHECK_OK(release(a, NULL));
}

// Every name in the table must be an exported symbol's, and nothing but cu* may
// be exported; the second half is checked on the names that a leak would have.
static void test_exports(void)
{
	static const char *const inner[] = {"nc_lock", "nc_config", "nc_ledger_alloc", "nc_range_at", "environ_"};
	for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
		CHECK(dlsym(library, inner[i]) == NULL);
	static const char *const legacy[] = {"cuMemAlloc", "cuMemFree", "cuMemGetInfo", "cuMemcpyHtoD", "cuMemAllocHost"};
	for (size_t i = 0; i < sizeof legacy / sizeof *legacy; i++) {
		int (*function)(void) = symbol(legacy[i]);
		CHECK_EQ(function(), CU_NOT_SUPPORTED);
	}
	const void *table = &table;
	const cu_uuid id = {{0}};
	CHECK_EQ(cuGetExportTable(&table, &id), CU_NOT_FOUND);
	CHECK(table == NULL);
}

static void test_error_names(void)
{
	const char *text;
	CHECK_OK(cuGetErrorName(2, &text));
	CHECK(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
	CHECK_OK(cuGetErrorString(2, &text));
	CHECK(strcmp(text, "out of memory") == 0);
	CHECK_EQ(cuGetErrorName(123456, &text), CU_INVALID_VALUE);
	CHECK(text == NULL);
}

int main(int argc, char **argv)
{
	(void)argc;
	setenv("NULLCUDA_SHARED", "none", 1);
	setenv("NULLCUDA_DRIVER_VERSION", "13000", 1);
	if (getenv("NULLCUDA_TEST_OLD_DRIVER"))
		setenv("NULLCUDA_DRIVER_VERSION", "12020", 1);
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	CHECK(library != NULL);
	if (getenv("NULLCUDA_TEST_OLD_DRIVER")) {
		test_driver_version();
		test_errors();
		return check_done("driver_proc, driver 12.2");
	}
	test_versions();
	test_per_thread_variants_work();
	test_exports();
	test_error_names();
	int failed = check_done("driver_proc");
	fflush(stdout);
	// The configuration is read once, so the old driver needs a process of its own.
	setenv("NULLCUDA_TEST_OLD_DRIVER", "1", 1);
	if (failed)
		return failed;
	execv(argv[0], argv);
	perror(argv[0]);
	return 1;
}
