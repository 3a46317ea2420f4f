// NULLCUDA_PAGES: device memory in pages of 2 MiB, paid for as a whole; and that the
// log's charges are what the device says is used.
#include "cu.h"

#include <sys/wait.h>

static void test_small_blocks_share(void)
{
	enum { COUNT = 300 };
	static cu_ptr a[COUNT];
	cu_ptr base;
	size_t bytes;
	CHECK_OK(cuMemAlloc_v2(&a[0], 1));
	CHECK_EQ(used_now(), 2 * MIB);
	CHECK_OK(cuMemAlloc_v2(&a[1], 1000));
	CHECK_EQ(a[1] - a[0], 512);
	CHECK_OK(cuMemAlloc_v2(&a[2], MIB - 1));
	CHECK_EQ(used_now(), 2 * MIB);
	CHECK_OK(cuMemAlloc_v2(&a[3], MIB - 512)); // 1 MiB - 1536 are left
	CHECK_EQ(used_now(), 4 * MIB);
	CHECK_OK(cuMemGetAddressRange_v2(&base, &bytes, a[1] + 7));
	CHECK_EQ(base, a[1]);
	CHECK_EQ(bytes, 1000);
	CHECK_OK(cuMemFree_v2(a[1]));
	CHECK_EQ(cuMemsetD8_v2(a[0], 1, 513), CU_INVALID_VALUE); // what is between blocks is nobody's
	CHECK_EQ(cuMemFree_v2(a[1]), CU_INVALID_VALUE);
	CHECK_OK(cuMemAlloc_v2(&a[1], 600)); // into the hole
	CHECK_EQ(a[1] - a[0], 512);
	for (int i = 0; i < 4; i++)
		CHECK_OK(cuMemFree_v2(a[i]));
	CHECK_EQ(used_now(), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_OK(cuMemAlloc_v2(&a[i], 64 * KIB));
	CHECK_EQ(used_now(), 2 * MIB * ((COUNT + 31) / 32));
	for (int i = 0; i < COUNT; i++)
		CHECK_OK(cuMemFree_v2(a[i * 7 % COUNT]));
	CHECK_EQ(used_now(), 0);
}

static void test_large_blocks_round(void)
{
	cu_ptr a, b;
	size_t pitch;
	CHECK_OK(cuMemAlloc_v2(&a, MIB));
	CHECK_EQ(used_now(), 2 * MIB);
	CHECK_OK(cuMemAllocPitch_v2(&b, &pitch, 512, 4097, 4));
	CHECK_EQ(used_now(), 6 * MIB);
	CHECK_EQ(cuMemsetD8_v2(a, 0, MIB + 1), CU_INVALID_VALUE); // the rest of the page is not the program's
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuMemFree_v2(b));
	CHECK_EQ(used_now(), 0);
}

static void test_full_device(void)
{
	cu_ptr most, first, second, third;
	CHECK_OK(cuMemAlloc_v2(&most, 61 * MIB)); // 62 of 64
	CHECK_OK(cuMemAlloc_v2(&first, MIB - 512));
	CHECK_OK(cuMemAlloc_v2(&second, MIB - 512)); // in the same page
	CHECK_EQ(cuMemAlloc_v2(&third, 2000), CU_OUT_OF_MEMORY);
	CHECK_OK(cuMemAlloc_v2(&third, 1024));
	CHECK_EQ(used_now(), 64 * MIB);
	CHECK_OK(cuMemFree_v2(most));
	CHECK_OK(cuMemFree_v2(first));
	CHECK_OK(cuMemFree_v2(second));
	CHECK_OK(cuMemFree_v2(third));
}

// Pages belong to a context and go with it.
static void test_contexts_do_not_share(void)
{
	void *context;
	cu_ptr a, b;
	CHECK_OK(cuMemAlloc_v2(&a, 100));
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(cuMemAlloc_v2(&b, 100));
	CHECK_EQ(used_now(), 4 * MIB);
	CHECK_OK(cuCtxDestroy_v2(context));
	CHECK_EQ(used_now(), 2 * MIB);
	CHECK_EQ(cuMemFree_v2(b), CU_INVALID_VALUE);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_EQ(used_now(), 0);
}

static int pass[2], back[2];

static int opener(void)
{
	cu_ipc_handle tickets[2];
	cu_ptr a, b, again;
	int value = 0;
	void *context;
	CHECK_OK(cuInit(0));
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_EQ(read(pass[0], tickets, sizeof tickets), (int)sizeof tickets);
	CHECK_OK(cuIpcOpenMemHandle_v2(&a, tickets[0], 1));
	CHECK_OK(cuIpcOpenMemHandle_v2(&b, tickets[1], 1));
	CHECK_OK(cuIpcOpenMemHandle_v2(&again, tickets[1], 1));
	CHECK(a != b && again == b);
	CHECK_OK(cuMemcpyDtoH_v2(&value, b, sizeof value));
	CHECK_EQ(value, 77);
	CHECK_OK(cuMemsetD32_v2(a, 78, 1));
	CHECK_OK(cuIpcCloseMemHandle(a));
	CHECK_OK(cuIpcCloseMemHandle(b));
	CHECK_OK(cuIpcCloseMemHandle(b));
	CHECK_EQ(write(back[1], "x", 1), 1);
	return checks_failed != 0;
}

// Blocks that share a page are exported with the page, and stay two.
static void test_export(pid_t child)
{
	cu_ipc_handle tickets[2];
	cu_ptr a, b;
	char byte;
	int value = 0, status = -1;
	CHECK_OK(cuMemAlloc_v2(&a, 100));
	CHECK_OK(cuMemAlloc_v2(&b, 300 * KIB));
	CHECK_OK(cuMemsetD32_v2(b, 77, 1));
	CHECK_OK(cuIpcGetMemHandle(&tickets[0], a));
	CHECK_OK(cuIpcGetMemHandle(&tickets[1], b));
	CHECK_EQ(write(pass[1], tickets, sizeof tickets), (int)sizeof tickets);
	CHECK_EQ(read(back[0], &byte, 1), 1);
	CHECK_OK(cuMemcpyDtoH_v2(&value, a, sizeof value));
	CHECK_EQ(value, 78);
	CHECK_OK(cuMemsetD8_v2(b, 0, 300 * KIB)); // clears shared pages
	CHECK_OK(cuMemcpyDtoH_v2(&value, b, sizeof value));
	CHECK_EQ(value, 0);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuMemFree_v2(b));
	CHECK_EQ(used_now(), 0);
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
}

static void check_log(void)
{
	struct log_line line;
	long long charged = 0, requested = 0, pages = 0, most = 0;
	int failures = 0;
	FILE *log = fopen(test_log_path, "r");
	CHECK(log != NULL);
	while (log && read_log(log, &line)) {
		int way = strcmp(line.op, "alloc") == 0  ? 1
				  : strcmp(line.op, "free") == 0 ? -1
												 : 0,
			page = strcmp(line.kind, "page") == 0;
		charged += way * (long long)line.charged;
		requested += way * (long long)line.requested;
		pages += page * way;
		failures += page && !way;
		most = charged > most ? charged : most;
		CHECK_EQ(line.charged % (2 * MIB), 0);
		if (page)
			CHECK_EQ(line.requested, 0);
		CHECK_EQ(line.live_charged, charged);
		CHECK_EQ(line.live_requested, requested);
	}
	CHECK_EQ(charged, 0);
	CHECK_EQ(pages, 0);
	CHECK_EQ(most, 64 * MIB);
	CHECK_EQ(failures, 1);
	if (log)
		fclose(log);
}

int main(void)
{
	setenv("NULLCUDA_PAGES", "2M", 1);
	setenv("NULLCUDA_MEM", "64M", 1);
	CHECK_EQ(pipe(pass), 0);
	CHECK_EQ(pipe(back), 0);
	setenv("NULLCUDA_SHARED", "none", 1);
	fflush(NULL);
	pid_t child = fork();
	if (!child)
		_exit(opener());
	log_to_file();
	start();
	test_small_blocks_share();
	test_large_blocks_round();
	test_full_device();
	test_contexts_do_not_share();
	test_export(child);
	check_log();
	return check_done("driver_page");
}
