// Virtual memory management: who pays, how long memory lives, and that two
// mappings of a handle are the same memory.
#include "cu.h"

#include <setjmp.h>
#include <signal.h>

#define STEP (2 * MIB)
static const cu_allocation_prop on_device = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
static const cu_allocation_prop exportable = {
	.type = CU_ALLOCATION_PINNED, .handle_types = CU_HANDLE_FD, .location = {CU_LOCATION_DEVICE, 0}};
static const cu_access_desc read_write = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE};

static void test_arguments(void)
{
	uint64_t handle;
	cu_ptr va;
	size_t granularity;
	CHECK_OK(cuMemGetAllocationGranularity(&granularity, &on_device, 0));
	CHECK_EQ(granularity, STEP);
	CHECK_EQ(cuMemCreate(&handle, STEP + 4096, &on_device, 0), CU_INVALID_VALUE);
	CHECK_EQ(cuMemCreate(&handle, 0, &on_device, 0), CU_INVALID_VALUE);
	const cu_allocation_prop nowhere = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 7}};
	CHECK_EQ(cuMemCreate(&handle, STEP, &nowhere, 0), CU_INVALID_DEVICE);
	CHECK_EQ(cuMemAddressReserve(&va, STEP - 1, 0, 0, 0), CU_INVALID_VALUE);
	CHECK_EQ(cuMemAddressReserve(&va, STEP, 3, 0, 0), CU_INVALID_VALUE);
	CHECK_EQ(cuMemRelease(12345), CU_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(STEP, STEP), CU_INVALID_VALUE);
}

// The memory of a handle lives until its release and its last unmapping.
static void test_lifetime(void)
{
	uint64_t handle, again;
	cu_ptr va;
	long long before = used_now();
	CHECK_OK(cuMemAddressReserve(&va, 10 * STEP, 0, 0, 0));
	CHECK_EQ(va % STEP, 0);
	CHECK_EQ(used_now(), before); // addresses are free
	CHECK_OK(cuMemCreate(&handle, 2 * STEP, &on_device, 0));
	CHECK_EQ(used_now() - before, 2 * STEP);
	CHECK_OK(cuMemMap(va, STEP, 0, handle, 0));
	CHECK_EQ(cuMemMap(va, STEP, 0, handle, 0), CU_INVALID_VALUE); // occupied
	CHECK_OK(cuMemMap(va + 4 * STEP, 2 * STEP, 0, handle, 0));
	CHECK_EQ(used_now() - before, 2 * STEP); // mappings cost nothing
	CHECK_EQ(cuMemMap(va + 9 * STEP, 2 * STEP, 0, handle, 0), CU_INVALID_VALUE); // beyond the reservation
	CHECK_EQ(cuMemMap(va + 8 * STEP, 2 * STEP, STEP, handle, 0), CU_INVALID_VALUE); // beyond the handle
	CHECK_OK(cuMemRelease(handle));
	CHECK_EQ(cuMemRelease(handle), CU_INVALID_VALUE);
	CHECK_EQ(used_now() - before, 2 * STEP);
	CHECK_OK(cuMemRetainAllocationHandle(&again, (void *)(va + 100)));
	CHECK_EQ(again, handle);
	CHECK_OK(cuMemUnmap(va, STEP));
	CHECK_EQ(cuMemUnmap(va + 4 * STEP, STEP), CU_INVALID_VALUE); // part of a mapping
	CHECK_EQ(cuMemAddressFree(va, 10 * STEP), CU_INVALID_VALUE); // still mapped
	CHECK_OK(cuMemUnmap(va + 4 * STEP, 2 * STEP));
	CHECK_EQ(used_now() - before, 2 * STEP); // retained
	CHECK_OK(cuMemRelease(again));
	CHECK_EQ(used_now(), before);
	CHECK_EQ(cuMemAddressFree(va, STEP), CU_INVALID_VALUE);
	CHECK_OK(cuMemAddressFree(va, 10 * STEP));
	CHECK_EQ(cuMemAddressFree(va, 10 * STEP), CU_INVALID_VALUE);
}

static void test_mappings_alias(const cu_allocation_prop *prop)
{
	uint64_t handle;
	cu_ptr va;
	int value = 0;
	CHECK_OK(cuMemAddressReserve(&va, 4 * STEP, 0, 0, 0));
	CHECK_OK(cuMemCreate(&handle, 2 * STEP, prop, 0));
	CHECK_OK(cuMemMap(va, 2 * STEP, 0, handle, 0));
	CHECK_OK(cuMemMap(va + 3 * STEP, STEP, STEP, handle, 0)); // its second half again
	CHECK_OK(cuMemSetAccess(va, 2 * STEP, &read_write, 1));
	CHECK_OK(cuMemSetAccess(va + 3 * STEP, STEP, &read_write, 1));
	CHECK_OK(cuMemsetD32_v2(va + STEP + 400, 77, 1));
	CHECK_OK(cuMemcpyDtoH_v2(&value, va + 3 * STEP + 400, 4));
	CHECK_EQ(value, 77);
	// A clear of whole pages must reach every mapping as well.
	CHECK_OK(cuMemsetD8_v2(va, 0, 2 * STEP));
	CHECK_OK(cuMemcpyDtoH_v2(&value, va + 3 * STEP + 400, 4));
	CHECK_EQ(value, 0);
	CHECK_OK(cuMemUnmap(va, 2 * STEP));
	CHECK_OK(cuMemUnmap(va + 3 * STEP, STEP));
	CHECK_OK(cuMemRelease(handle));
	CHECK_OK(cuMemAddressFree(va, 4 * STEP));
}

static sigjmp_buf escape;
static void on_fault(int signal) { siglongjmp(escape, signal); }

static void test_access(void)
{
	uint64_t handle;
	cu_ptr va;
	ull flags = 99;
	const cu_location here = {CU_LOCATION_DEVICE, 0};
	CHECK_OK(cuMemAddressReserve(&va, 2 * STEP, 0, 0, 0));
	CHECK_OK(cuMemCreate(&handle, STEP, &on_device, 0));
	CHECK_OK(cuMemMap(va, STEP, 0, handle, 0));
	CHECK_OK(cuMemMap(va + STEP, STEP, 0, handle, 0));
	CHECK_OK(cuMemGetAccess(&flags, &here, va));
	CHECK_EQ(flags, CU_ACCESS_NONE);
	CHECK_EQ(cuMemsetD8_v2(va, 1, 10), CU_INVALID_VALUE); // an error, not a fault
	struct sigaction action = {.sa_handler = on_fault}, old;
	sigaction(SIGSEGV, &action, &old);
	int fault = sigsetjmp(escape, 1);
	if (!fault)
		*(volatile char *)va = 1;
	sigaction(SIGSEGV, &old, NULL);
	CHECK_EQ(fault, SIGSEGV);
	CHECK_EQ(cuMemSetAccess(va, STEP / 2, &read_write, 1), CU_INVALID_VALUE);
	CHECK_OK(cuMemSetAccess(va, 2 * STEP, &read_write, 1)); // both mappings at once
	CHECK_OK(cuMemGetAccess(&flags, &here, va + STEP));
	CHECK_EQ(flags, CU_ACCESS_READ_WRITE);
	CHECK_OK(cuMemsetD8_v2(va, 1, 2 * STEP)); // across the seam
	CHECK_OK(cuMemUnmap(va, 2 * STEP));       // both at once, too
	CHECK_EQ(cuMemsetD8_v2(va, 1, 10), CU_INVALID_VALUE);
	CHECK_OK(cuMemRelease(handle));
	CHECK_OK(cuMemAddressFree(va, 2 * STEP));
}

static void test_export(void)
{
	uint64_t handle, imported, plain;
	cu_ptr va;
	int fd = -1, value = 0;
	cu_allocation_prop prop;
	long long before = used_now();
	CHECK_OK(cuMemCreate(&plain, STEP, &on_device, 0));
	CHECK_EQ(cuMemExportToShareableHandle(&fd, plain, CU_HANDLE_FD, 0), CU_INVALID_VALUE);
	CHECK_OK(cuMemRelease(plain));
	CHECK_OK(cuMemCreate(&handle, STEP, &exportable, 0));
	CHECK_OK(cuMemExportToShareableHandle(&fd, handle, CU_HANDLE_FD, 0));
	CHECK_OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, CU_HANDLE_FD));
	close(fd);
	CHECK(imported != handle);
	CHECK_EQ(used_now() - before, STEP); // foreign memory is not paid for again
	CHECK_OK(cuMemGetAllocationPropertiesFromHandle(&prop, imported));
	CHECK_EQ(prop.location.type, CU_LOCATION_DEVICE);
	CHECK_OK(cuMemAddressReserve(&va, 2 * STEP, 0, 0, 0));
	CHECK_OK(cuMemMap(va, STEP, 0, handle, 0));
	CHECK_OK(cuMemMap(va + STEP, STEP, 0, imported, 0));
	CHECK_OK(cuMemSetAccess(va, 2 * STEP, &read_write, 1));
	CHECK_OK(cuMemsetD32_v2(va, 5, 1));
	CHECK_OK(cuMemcpyDtoH_v2(&value, va + STEP, 4));
	CHECK_EQ(value, 5);
	CHECK_EQ(cuMemImportFromShareableHandle(&plain, (void *)(intptr_t)0, CU_HANDLE_FD), CU_INVALID_VALUE);
	CHECK_OK(cuMemUnmap(va, 2 * STEP));
	CHECK_OK(cuMemRelease(handle));
	CHECK_OK(cuMemRelease(imported));
	CHECK_OK(cuMemAddressFree(va, 2 * STEP));
	CHECK_EQ(used_now(), before);
}

// A handle of the fabric is 64 bytes that anybody may hold; it leads to the memory for as long as that lives in its
// process.
static void test_fabric(void)
{
	uint64_t handle, imported, plain, none;
	cu_fabric_handle fabric, junk = {{1}};
	cu_ptr va;
	int value = 0, fd;
	long long before = used_now();
	const cu_allocation_prop both = {.type = CU_ALLOCATION_PINNED,
		.handle_types = CU_HANDLE_FABRIC | CU_HANDLE_FD,
		.location = {CU_LOCATION_DEVICE, 0}};
	const cu_allocation_prop only = {
		.type = CU_ALLOCATION_PINNED, .handle_types = CU_HANDLE_FABRIC, .location = {CU_LOCATION_DEVICE, 0}};
	CHECK_OK(cuMemCreate(&plain, STEP, &exportable, 0));
	CHECK_EQ(cuMemExportToShareableHandle(&fabric, plain, CU_HANDLE_FABRIC, 0), CU_INVALID_VALUE); // not asked for
	CHECK_OK(cuMemRelease(plain));
	CHECK_OK(cuMemCreate(&plain, STEP, &only, 0));
	CHECK_EQ(cuMemExportToShareableHandle(&fd, plain, CU_HANDLE_FD, 0), CU_INVALID_VALUE);
	CHECK_OK(cuMemRelease(plain));
	CHECK_OK(cuMemCreate(&handle, STEP, &both, 0));
	CHECK_OK(cuMemExportToShareableHandle(&fabric, handle, CU_HANDLE_FABRIC, 0));
	CHECK_OK(cuMemImportFromShareableHandle(&imported, &fabric, CU_HANDLE_FABRIC));
	CHECK_EQ(used_now() - before, STEP); // foreign memory is not paid for again
	CHECK_OK(cuMemAddressReserve(&va, 2 * STEP, 0, 0, 0));
	CHECK_OK(cuMemMap(va, STEP, 0, handle, 0));
	CHECK_OK(cuMemMap(va + STEP, STEP, 0, imported, 0));
	CHECK_OK(cuMemSetAccess(va, 2 * STEP, &read_write, 1));
	CHECK_OK(cuMemsetD32_v2(va, 7, 1));
	CHECK_OK(cuMemcpyDtoH_v2(&value, va + STEP, 4));
	CHECK_EQ(value, 7);
	CHECK_EQ(cuMemImportFromShareableHandle(&none, &junk, CU_HANDLE_FABRIC), CU_INVALID_VALUE);
	CHECK_EQ(cuMemImportFromShareableHandle(&none, NULL, CU_HANDLE_FABRIC), CU_INVALID_VALUE);
	CHECK_OK(cuMemUnmap(va, 2 * STEP));
	CHECK_OK(cuMemRelease(handle));
	CHECK_EQ(
		cuMemImportFromShareableHandle(&none, &fabric, CU_HANDLE_FABRIC), CU_INVALID_VALUE); // gone in its own process
	CHECK_OK(cuMemRelease(imported));
	CHECK_OK(cuMemAddressFree(va, 2 * STEP));
	CHECK_EQ(used_now(), before);
}

// As PyTorch reserves: more addresses than the device has memory, cheaply; and
// mapped memory costs host pages only when touched.
static void test_large_reservation(void)
{
	uint64_t handle;
	cu_ptr va, hinted;
	CHECK_OK(cuMemAddressReserve(&va, 128 * GIB, 0, 0, 0));
	CHECK_OK(cuMemCreate(&handle, 4 * GIB, &on_device, 0));
	long before = resident_pages();
	CHECK_OK(cuMemMap(va + 64 * GIB, 4 * GIB, 0, handle, 0));
	CHECK_OK(cuMemSetAccess(va + 64 * GIB, 4 * GIB, &read_write, 1));
	CHECK(resident_pages() - before < 1000);
	CHECK_OK(cuMemUnmap(va + 64 * GIB, 4 * GIB));
	CHECK_OK(cuMemRelease(handle));
	CHECK_OK(cuMemAddressFree(va, 128 * GIB));
	CHECK_OK(cuMemAddressReserve(&hinted, STEP, 0, va, 0)); // free again: the hint is taken
	CHECK_EQ(hinted, va);
	CHECK_OK(cuMemAddressReserve(&va, STEP, 64 * MIB, hinted, 0)); // taken: somewhere else
	CHECK(va != hinted && va % (64 * MIB) == 0);
	CHECK_OK(cuMemAddressFree(hinted, STEP));
	CHECK_OK(cuMemAddressFree(va, STEP));
}

int main(void)
{
	start();
	test_arguments();
	test_lifetime();
	test_mappings_alias(&on_device);
	test_mappings_alias(&exportable);
	test_access();
	test_export();
	test_fabric();
	test_large_reservation();
	return check_done("driver_vmm");
}
