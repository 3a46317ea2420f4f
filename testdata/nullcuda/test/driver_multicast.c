// Multicast objects: what they cost (nothing), what keeps bound memory alive, and an
// object shared by descriptor. Two devices.
#include "cu.h"

#define STEP (2 * MIB)

static cu_allocation_prop on(int device)
{
	return (cu_allocation_prop){.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, device}};
}

static uint64_t memory_on(int device, size_t bytes, int handle_types)
{
	uint64_t handle = 0;
	cu_allocation_prop prop = on(device);
	prop.handle_types = handle_types;
	CHECK_OK(cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

static void test_arguments(void)
{
	uint64_t team;
	size_t granularity;
	int yes = 0;
	cu_multicast_prop prop = {.devices = 2, .size = STEP};
	CHECK_OK(cuDeviceGetAttribute(&yes, 132, 0));
	CHECK_EQ(yes, 1);
	CHECK_OK(cuMulticastGetGranularity(&granularity, &prop, 0));
	CHECK_EQ(granularity, STEP);
	CHECK_EQ(cuMulticastGetGranularity(&granularity, &prop, 2), CU_INVALID_VALUE);
	prop.devices = 3;
	CHECK_EQ(cuMulticastCreate(&team, &prop), CU_INVALID_VALUE);
	prop.devices = 2, prop.size = 4096;
	CHECK_EQ(cuMulticastCreate(&team, &prop), CU_INVALID_VALUE);
	prop.size = STEP, prop.handle_types = 8;
	CHECK_EQ(cuMulticastCreate(&team, &prop), CU_INVALID_VALUE);
	uint64_t plain = memory_on(0, STEP, 0);
	CHECK_EQ(cuMulticastAddDevice(plain, 0), CU_INVALID_VALUE);
	CHECK_EQ(cuMulticastUnbind(plain, 0, 0, STEP), CU_INVALID_VALUE);
	CHECK_OK(cuMemRelease(plain));
}

static void test_binding(void)
{
	uint64_t team, first = memory_on(0, 2 * STEP, 0), second = memory_on(1, 2 * STEP, 0);
	const cu_multicast_prop prop = {.devices = 2, .size = 2 * STEP};
	const cu_access_desc access = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE};
	cu_ptr va, unicast;
	CHECK_EQ(used_now(), 2 * STEP);
	CHECK_OK(cuMulticastCreate(&team, &prop));
	CHECK_EQ(used_now(), 2 * STEP); // costs nothing
	CHECK_OK(cuMemAddressReserve(&va, 4 * STEP, 0, 0, 0));
	unicast = va + 2 * STEP;
	CHECK_OK(cuMulticastAddDevice(team, 0));
	CHECK_EQ(cuMulticastAddDevice(team, 0), CU_INVALID_VALUE);
	CHECK_EQ(cuMulticastBindMem(team, 0, first, 0, STEP, 0), CU_ILLEGAL_STATE); // a device is missing
	CHECK_EQ(cuMemMap(va, 2 * STEP, 0, team, 0), CU_ILLEGAL_STATE);
	CHECK_OK(cuMulticastAddDevice(team, 1));
	CHECK_EQ(cuMulticastAddDevice(team, 2), CU_INVALID_DEVICE);
	CHECK_OK(cuMulticastBindMem(team, 0, first, STEP, STEP, 0));
	CHECK_EQ(cuMulticastBindMem(team, 0, first, 0, 2 * STEP, 0), CU_INVALID_VALUE); // overlaps
	CHECK_EQ(cuMulticastBindMem(team, STEP, first, STEP, 2 * STEP, 0), CU_INVALID_VALUE);
	CHECK_EQ(cuMulticastBindMem_v2(team, 1, STEP, first, 0, STEP, 0), CU_INVALID_VALUE); // of the other device
	CHECK_OK(cuMulticastBindMem_v2(team, 1, 0, second, 0, STEP, 0));
	CHECK_OK(cuMemMap(unicast, 2 * STEP, 0, second, 0));
	CHECK_OK(cuMulticastBindAddr(team, STEP, unicast + STEP, STEP, 0));
	CHECK_OK(cuMulticastUnbind(team, 1, STEP, STEP));
	CHECK_OK(cuMulticastBindAddr_v2(team, 1, STEP, unicast, STEP, 0));
	CHECK_EQ(cuMulticastBindAddr(team, STEP, va, STEP, 0), CU_INVALID_VALUE); // nothing there
	CHECK_OK(cuMemMap(va, 2 * STEP, 0, team, 0));
	CHECK_OK(cuMemSetAccess(va, 2 * STEP, &access, 1));
	CHECK_OK(cuMemRelease(first)); // bound: stays
	CHECK_EQ(used_now(), 2 * STEP);
	CHECK_EQ(cuMulticastUnbind(team, 0, 0, 2 * STEP), CU_INVALID_VALUE); // as it was bound
	CHECK_OK(cuMulticastUnbind(team, 0, 0, STEP));
	CHECK_EQ(used_now(), 0);
	CHECK_OK(cuMemUnmap(unicast, 2 * STEP));
	CHECK_OK(cuMemRelease(second));
	CHECK_OK(cuMemRelease(team));
	CHECK_EQ(cuMulticastUnbind(team, 1, 0, STEP), CU_INVALID_VALUE);
	CHECK_OK(cuMemUnmap(va, 2 * STEP)); // the object's end unbinds the rest
	CHECK_OK(cuMemAddressFree(va, 4 * STEP));
}

// Devices can be added through either of two handles that stand for one object.
static void test_sharing(void)
{
	uint64_t team, same;
	int fd = -1;
	const cu_multicast_prop prop = {.devices = 2, .size = STEP, .handle_types = CU_HANDLE_FD};
	CHECK_OK(cuMulticastCreate(&team, &prop));
	CHECK_OK(cuMemExportToShareableHandle(&fd, team, CU_HANDLE_FD, 0));
	CHECK_OK(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)fd, CU_HANDLE_FD));
	close(fd);
	CHECK(same != team);
	CHECK_OK(cuMulticastAddDevice(team, 0));
	CHECK_OK(cuMulticastAddDevice(same, 1));
	uint64_t plain = memory_on(0, STEP, 0), shareable = memory_on(0, STEP, CU_HANDLE_FD),
			 other = memory_on(1, STEP, CU_HANDLE_FD);
	CHECK_EQ(cuMulticastBindMem(team, 0, plain, 0, STEP, 0), CU_INVALID_VALUE);
	CHECK_OK(cuMulticastBindMem(team, 0, shareable, 0, STEP, 0));
	CHECK_OK(cuMulticastBindMem(same, 0, other, 0, STEP, 0));
	CHECK_OK(cuMemRelease(plain));
	CHECK_OK(cuMemRelease(shareable));
	CHECK_OK(cuMemRelease(other));
	CHECK_EQ(used_now(), STEP); // what device 0 holds
	CHECK_OK(cuMemRelease(team));
	CHECK_OK(cuMemRelease(same));
	CHECK_EQ(used_now(), 0);
}

int main(void)
{
	setenv("NULLCUDA_DEVICES", "2", 1);
	start();
	test_arguments();
	test_binding();
	test_sharing();
	return check_done("driver_multicast");
}
