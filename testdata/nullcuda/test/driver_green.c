// Green contexts: shares of multiprocessors, whose memory belongs to the primary
// context; and the counted contexts of old. A context costs 10 MiB here.
#include "cu.h"

static void test_shares(void)
{
	cu_dev_resource all, groups[20], rest, made_up = {.type = CU_RESOURCE_SM, .sm = {.count = 8}};
	unsigned count = 99;
	void *desc;
	CHECK_EQ(cuDeviceGetDevResource(0, &all, 1000), CU_INVALID_RESOURCE_TYPE);
	CHECK_EQ(cuDeviceGetDevResource(9, &all, CU_RESOURCE_SM), CU_INVALID_DEVICE);
	CHECK_OK(cuDeviceGetDevResource(0, &all, CU_RESOURCE_SM));
	CHECK_EQ(all.sm.count, 132);
	CHECK_OK(cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, 10));
	CHECK_EQ(count, 8); // of 16 each
	count = 3;
	CHECK_OK(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, 10));
	CHECK_EQ(count, 3);
	CHECK_EQ(groups[2].sm.count, 16);
	CHECK_EQ(rest.sm.count, 132 - 48);
	count = 20;
	CHECK_OK(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 1, 10)); // finer groups
	CHECK_EQ(count, 13);
	CHECK_EQ(rest.sm.count, 2);
	CHECK_EQ(cuDevSmResourceSplitByCount(groups, &count, &groups[0], NULL, 0, 2), CU_INVALID_RESOURCE_CONFIGURATION);
	CHECK_EQ(cuDevSmResourceSplitByCount(groups, &count, &all, NULL, 0, 133), CU_INVALID_RESOURCE_CONFIGURATION);
	CHECK_EQ(cuDevResourceGenerateDesc(&desc, &made_up, 1), CU_INVALID_RESOURCE_CONFIGURATION);
	CHECK_EQ(cuDevResourceGenerateDesc(&desc, groups, 0), CU_INVALID_VALUE);
}

static void *descriptor(void)
{
	void *desc = NULL;
	cu_dev_resource all, group;
	unsigned count = 1;
	CHECK_OK(cuDeviceGetDevResource(0, &all, CU_RESOURCE_SM));
	CHECK_OK(cuDevSmResourceSplitByCount(&group, &count, &all, NULL, 0, 8));
	CHECK_OK(cuDevResourceGenerateDesc(&desc, &group, 1));
	return desc;
}

static void test_green_context(void)
{
	void *green, *context, *current, *stream, *event, *found, *primary;
	cu_dev_resource resource;
	unsigned flags;
	int active = -1, device = -1;
	ull id = 0, other = 0;
	cu_ptr a, async;
	CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 0);
	CHECK_EQ(cuGreenCtxCreate(&green, &id, 0, 1), CU_INVALID_VALUE); // no descriptor
	CHECK_OK(cuGreenCtxCreate(&green, descriptor(), 0, 1));
	CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 1); // retained
	CHECK_OK(cuGreenCtxGetDevResource(green, &resource, CU_RESOURCE_SM));
	CHECK_EQ(resource.sm.count, 8);
	CHECK_EQ(cuCtxSetCurrent(green), CU_INVALID_CONTEXT); // not itself
	CHECK_OK(cuCtxFromGreenCtx(&context, green));
	CHECK_OK(cuCtxSetCurrent(context));
	CHECK_OK(cuCtxGetCurrent(&current));
	CHECK(current == context);
	CHECK_OK(cuCtxGetDevice(&device));
	CHECK_EQ(device, 0);
	CHECK_OK(cuCtxGetDevResource(context, &resource, CU_RESOURCE_SM));
	CHECK_EQ(resource.sm.count, 8);
	CHECK_EQ(used_now(), 10 * MIB); // the primary's cost, none of its own
	CHECK_OK(cuMemAlloc_v2(&a, MIB));
	CHECK_OK(cuPointerGetAttribute(&found, 1, a));
	CHECK_OK(cuDevicePrimaryCtxRetain(&primary, 0));
	CHECK(found == primary && primary != context);
	CHECK_EQ(cuGreenCtxStreamCreate(&stream, green, 0, 0), CU_INVALID_VALUE); // must not block
	CHECK_OK(cuGreenCtxStreamCreate(&stream, green, 1, -1));
	CHECK_OK(cuStreamGetGreenCtx(stream, &found));
	CHECK(found == green);
	CHECK_OK(cuStreamGetCtx_v2(stream, &current, &found));
	CHECK(found == green);
	CHECK_OK(cuStreamGetDevResource(stream, &resource, CU_RESOURCE_SM));
	CHECK_EQ(resource.sm.count, 8);
	CHECK_OK(cuMemAllocAsync(&async, 1000, stream));
	CHECK_OK(cuMemFreeAsync(async, stream));
	CHECK_OK(cuEventCreate(&event, 0));
	CHECK_OK(cuGreenCtxRecordEvent(green, event));
	CHECK_OK(cuEventQuery(event));
	CHECK_OK(cuGreenCtxWaitEvent(green, event));
	CHECK_OK(cuGreenCtxGetId(green, &id));
	CHECK_OK(cuGreenCtxCreate(&found, descriptor(), 0, 1));
	CHECK_OK(cuGreenCtxGetId(found, &other));
	CHECK(id != other);
	CHECK_OK(cuGreenCtxDestroy(found));
	CHECK_EQ(cuCtxDestroy_v2(context), CU_INVALID_CONTEXT);
	CHECK_OK(cuGreenCtxDestroy(green));
	CHECK_EQ(cuGreenCtxDestroy(green), CU_INVALID_CONTEXT);
	CHECK_EQ(cuCtxGetDevice(&device), CU_CONTEXT_IS_DESTROYED);
	CHECK_EQ(cuStreamQuery(stream), CU_STREAM_DETACHED);
	CHECK_EQ(cuMemAllocAsync(&async, 1000, stream), CU_STREAM_DETACHED);
	CHECK_OK(cuStreamDestroy_v2(stream));
	CHECK_OK(cuCtxSetCurrent(primary)); // retained above, so the memory is still there
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
	CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 0);
	CHECK_OK(cuCtxPopCurrent_v2(&current));
}

// With the last green context goes what was allocated under it.
static void test_end_of_the_primary(void)
{
	void *green, *context, *other;
	cu_ptr a;
	CHECK_OK(cuCtxCreate_v2(&other, 0, 0));
	CHECK_OK(cuGreenCtxCreate(&green, descriptor(), 0, 1));
	CHECK_OK(cuCtxFromGreenCtx(&context, green));
	CHECK_OK(cuCtxPushCurrent_v2(context));
	CHECK_OK(cuMemAlloc_v2(&a, MIB));
	CHECK_EQ(used_now(), 21 * MIB);
	CHECK_OK(cuGreenCtxDestroy(green));
	CHECK_OK(cuCtxPopCurrent_v2(NULL));
	CHECK_EQ(used_now(), 10 * MIB);
	CHECK_EQ(cuMemFree_v2(a), CU_INVALID_VALUE);
	CHECK_OK(cuCtxDestroy_v2(other));
}

static void test_counted_context(void)
{
	void *context, *same, *other;
	cu_ptr a;
	CHECK_EQ(cuCtxAttach(&same, 0), CU_INVALID_CONTEXT); // none is current
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_EQ(cuCtxAttach(&same, 1), CU_INVALID_VALUE);
	CHECK_OK(cuCtxAttach(&same, 0));
	CHECK(same == context);
	CHECK_OK(cuMemAlloc_v2(&a, MIB));
	CHECK_OK(cuCtxCreate_v2(&other, 0, 0));
	CHECK_EQ(cuCtxDetach(context), CU_INVALID_CONTEXT); // not current
	CHECK_OK(cuCtxDetach(other));
	CHECK_OK(cuCtxDetach(context));
	CHECK_EQ(used_now(), 11 * MIB);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuMemAlloc_v2(&a, MIB));
	CHECK_OK(cuCtxDetach(context));
	CHECK_EQ(cuCtxDetach(context), CU_INVALID_CONTEXT);
	CHECK_EQ(cuCtxDestroy_v2(context), CU_CONTEXT_IS_DESTROYED);
	CHECK_OK(cuCtxCreate_v2(&other, 0, 0));
	CHECK_EQ(used_now(), 10 * MIB); // the memory went with it
	CHECK_OK(cuCtxDestroy_v2(other));
}

int main(void)
{
	setenv("NULLCUDA_SHARED", "none", 1);
	setenv("NULLCUDA_CONTEXT", "10M", 1);
	CHECK_OK(cuInit(0));
	test_shares();
	test_green_context();
	test_end_of_the_primary();
	test_counted_context();
	return check_done("driver_green");
}
