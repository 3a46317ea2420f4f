// The driver's functions as the tests call them, and what the tests share.
#ifndef NULLCUDA_TEST_CU_H
#define NULLCUDA_TEST_CU_H

#include "../driver/abi.h"
#include "check.h"

#include <unistd.h>

typedef unsigned long long ull;

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetCount(int *count);
int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetUuid(cu_uuid *uuid, int device);
int cuDeviceGetUuid_v2(cu_uuid *uuid, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetPCIBusId(char *text, int size, int device);
int cuDeviceGetByPCIBusId(int *device, const char *text);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuGetErrorName(int code, const char **name);
int cuGetErrorString(int code, const char **text);
int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status);
int cuGetExportTable(const void **table, const cu_uuid *id);

int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxCreate_v4(void **context, void *params, unsigned flags, int device);
int cuCtxDestroy_v2(void *context);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxSetCurrent(void *context);
int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int cuCtxSynchronize(void);
int cuCtxGetLimit(size_t *value, int limit);
int cuCtxSetLimit(int limit, size_t value);
int cuCtxGetApiVersion(void *context, unsigned *version);
int cuCtxEnablePeerAccess(void *context, unsigned flags);
int cuCtxDisablePeerAccess(void *context);
int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);

int cuCtxAttach(void **context, unsigned flags);
int cuCtxDetach(void *context);
int cuDeviceGetDevResource(int device, cu_dev_resource *resource, int type);
int cuCtxGetDevResource(void *context, cu_dev_resource *resource, int type);
int cuGreenCtxGetDevResource(void *green, cu_dev_resource *resource, int type);
int cuStreamGetDevResource(void *stream, cu_dev_resource *resource, int type);
int cuDevSmResourceSplitByCount(cu_dev_resource *result, unsigned *groups, const cu_dev_resource *input,
                                cu_dev_resource *remainder, unsigned flags, unsigned least);
int cuDevResourceGenerateDesc(void **desc, cu_dev_resource *resources, unsigned count);
int cuGreenCtxCreate(void **green, void *desc, int device, unsigned flags);
int cuGreenCtxDestroy(void *green);
int cuCtxFromGreenCtx(void **context, void *green);
int cuGreenCtxStreamCreate(void **stream, void *green, unsigned flags, int priority);
int cuGreenCtxGetId(void *green, ull *id);
int cuGreenCtxRecordEvent(void *green, void *event);
int cuGreenCtxWaitEvent(void *green, void *event);
int cuStreamGetGreenCtx(void *stream, void **green);

int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cuStreamDestroy_v2(void *stream);
int cuStreamQuery(void *stream);
int cuStreamSynchronize(void *stream);
int cuStreamGetPriority(void *stream, int *priority);
int cuStreamGetId(void *stream, ull *id);
int cuStreamGetCtx(void *stream, void **context);
int cuStreamGetCtx_v2(void *stream, void **context, void **green);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuStreamIsCapturing(void *stream, int *status);
int cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id, void **graph, const void **nodes, size_t *count);
int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuEventElapsedTime(float *milliseconds, void *start, void *end);
int cuLaunchHostFunc(void *stream, void (*fn)(void *user), void *user);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, void *stream, void **params, void **extra);

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
int cuMemAlloc_v2(cu_ptr *address, size_t bytes);
int cuMemAlloc(cu_ptr *address, size_t bytes);
int cuMemAllocPitch_v2(cu_ptr *address, size_t *pitch, size_t width, size_t height, unsigned element);
int cuMemAllocManaged(cu_ptr *address, size_t bytes, unsigned flags);
int cuMemFree_v2(cu_ptr address);
int cuMemGetAddressRange_v2(cu_ptr *base, size_t *bytes, cu_ptr address);
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
int cuMemFreeHost(void *address);
int cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *address);
int cuMemHostGetDevicePointer_v2(cu_ptr *device_address, void *address, unsigned flags);
int cuMemHostGetFlags(unsigned *flags, void *address);
int cuPointerGetAttribute(void *data, int attribute, cu_ptr address);
int cuPointerGetAttributes(unsigned count, int *attributes, void **data, cu_ptr address);

int cuMemcpy(cu_ptr dst, cu_ptr src, size_t bytes);
int cuMemcpyHtoD_v2(cu_ptr dst, const void *src, size_t bytes);
int cuMemcpyDtoH_v2(void *dst, cu_ptr src, size_t bytes);
int cuMemcpyDtoD_v2(cu_ptr dst, cu_ptr src, size_t bytes);
int cuMemcpyDtoDAsync_v2(cu_ptr dst, cu_ptr src, size_t bytes, void *stream);
int cuMemcpyHtoA_v2(void *dst, size_t at, const void *src, size_t bytes);
int cuMemcpyAtoH_v2(void *dst, void *src, size_t at, size_t bytes);
int cuMemcpy2D_v2(const cu_copy2d *copy);
int cuMemcpy3D_v2(const cu_copy3d *copy);
int cuMemcpyBatchAsync_v2(cu_ptr *dsts, cu_ptr *srcs, size_t *sizes, size_t count, void *attributes, size_t *indices,
                          size_t attribute_count, void *stream);
int cuMemsetD8_v2(cu_ptr dst, unsigned char value, size_t n);
int cuMemsetD16_v2(cu_ptr dst, unsigned short value, size_t n);
int cuMemsetD32_v2(cu_ptr dst, unsigned value, size_t n);
int cuMemsetD2D8_v2(cu_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height);
int cuMemsetD32Async(cu_ptr dst, unsigned value, size_t n, void *stream);

int cuArrayCreate_v2(void **array, const cu_array_desc *desc);
int cuArray3DCreate_v2(void **array, const cu_array3d_desc *desc);
int cuArrayGetDescriptor_v2(cu_array_desc *desc, void *array);
int cuArrayDestroy(void *array);
int cuMipmappedArrayCreate(void **mipmap, const cu_array3d_desc *desc, unsigned levels);
int cuMipmappedArrayGetLevel(void **array, void *mipmap, unsigned level);
int cuMipmappedArrayDestroy(void *mipmap);
int cuArrayGetSparseProperties(cu_sparse_properties *out, void *array);
int cuMipmappedArrayGetSparseProperties(cu_sparse_properties *out, void *mipmap);
int cuMemMapArrayAsync(cu_array_map *list, unsigned count, void *stream);
int cuMemMapArrayAsync_ptsz(cu_array_map *list, unsigned count, void *stream);

int cuMemAllocAsync(cu_ptr *address, size_t bytes, void *stream);
int cuMemAllocFromPoolAsync(cu_ptr *address, size_t bytes, void *pool, void *stream);
int cuMemFreeAsync(cu_ptr address, void *stream);
int cuMemPoolCreate(void **pool, const cu_pool_props *props);
int cuMemPoolDestroy(void *pool);
int cuMemPoolTrimTo(void *pool, size_t keep);
int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
int cuMemPoolExportToShareableHandle(void *out, void *pool, int type, ull flags);
int cuMemPoolImportFromShareableHandle(void **pool, void *os_handle, int type, ull flags);
int cuMemPoolExportPointer(cu_pool_export *out, cu_ptr address);
int cuMemPoolImportPointer(cu_ptr *address, void *pool, const cu_pool_export *in);
int cuMemGetDefaultMemPool(void **pool, cu_location *location, int type);
int cuMemGetMemPool(void **pool, cu_location *location, int type);
int cuMemSetMemPool(cu_location *location, int type, void *pool);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuDeviceGetMemPool(void **pool, int device);
int cuDeviceSetMemPool(int device, void *pool);

int cuMemAddressReserve(cu_ptr *address, size_t size, size_t align, cu_ptr hint, ull flags);
int cuMemAddressFree(cu_ptr address, size_t size);
int cuMemCreate(uint64_t *handle, size_t size, const cu_allocation_prop *prop, ull flags);
int cuMemRelease(uint64_t handle);
int cuMemMap(cu_ptr address, size_t size, size_t offset, uint64_t handle, ull flags);
int cuMemUnmap(cu_ptr address, size_t size);
int cuMemSetAccess(cu_ptr address, size_t size, const cu_access_desc *access, size_t count);
int cuMemGetAccess(ull *flags, const cu_location *location, cu_ptr address);
int cuMemRetainAllocationHandle(uint64_t *handle, void *address);
int cuMemGetAllocationGranularity(size_t *granularity, const cu_allocation_prop *prop, int option);
int cuMemGetAllocationPropertiesFromHandle(cu_allocation_prop *prop, uint64_t handle);
int cuMemExportToShareableHandle(void *out, uint64_t handle, int type, ull flags);
int cuMemImportFromShareableHandle(uint64_t *handle, void *os_handle, int type);

int cuMulticastGetGranularity(size_t *granularity, const cu_multicast_prop *prop, int option);
int cuMulticastCreate(uint64_t *handle, const cu_multicast_prop *prop);
int cuMulticastAddDevice(uint64_t handle, int device);
int cuMulticastBindMem(uint64_t handle, size_t at, uint64_t memory, size_t offset, size_t bytes, ull flags);
int cuMulticastBindMem_v2(
	uint64_t handle, int device, size_t at, uint64_t memory, size_t offset, size_t bytes, ull flags);
int cuMulticastBindAddr(uint64_t handle, size_t at, cu_ptr address, size_t bytes, ull flags);
int cuMulticastBindAddr_v2(uint64_t handle, int device, size_t at, cu_ptr address, size_t bytes, ull flags);
int cuMulticastUnbind(uint64_t handle, int device, size_t at, size_t bytes);

int cuIpcGetMemHandle(cu_ipc_handle *handle, cu_ptr address);
int cuIpcOpenMemHandle_v2(cu_ptr *address, cu_ipc_handle handle, unsigned flags);
int cuIpcCloseMemHandle(cu_ptr address);

int cuImportExternalMemory(void **memory, const cu_external_memory *desc);
int cuExternalMemoryGetMappedBuffer(cu_ptr *address, void *memory, const cu_external_buffer *desc);
int cuExternalMemoryGetMappedMipmappedArray(void **mipmap, void *memory, const cu_external_mipmap *desc);
int cuDestroyExternalMemory(void *memory);

int cuModuleLoadData(void **module, const void *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetGlobal_v2(cu_ptr *address, size_t *bytes, void *module, const char *name);
int cuFuncGetAttribute(int *value, int attribute, void *function);
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuLibraryLoadData(void **library, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                      int *options, void **values, unsigned count);
int cuLibraryUnload(void *library);
int cuLibraryGetGlobal(cu_ptr *address, size_t *bytes, void *library, const char *name);
int cuLibraryGetManaged(cu_ptr *address, size_t *bytes, void *library, const char *name);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int block_size, size_t shared);

int cuGraphCreate(void **graph, unsigned flags);
int cuGraphDestroy(void *graph);
int cuGraphAddMemcpyNode(
	void **node, void *graph, void *const *nodes, size_t count, const cu_copy3d *copy, void *context);
int cuGraphAddMemsetNode(
	void **node, void *graph, void *const *nodes, size_t count, const cu_memset_node *fill, void *context);
int cuGraphAddHostNode(void **node, void *graph, void *const *nodes, size_t count, const cu_host_node *host);
int cuGraphAddMemAllocNode(void **node, void *graph, void *const *nodes, size_t count, cu_alloc_node *alloc);
int cuGraphAddMemFreeNode(void **node, void *graph, void *const *nodes, size_t count, cu_ptr address);
int cuGraphAddChildGraphNode(void **node, void *graph, void *const *nodes, size_t count, void *child);
int cuGraphAddDependencies(void *graph, void *const *from, void *const *to, size_t count);
int cuGraphGetNodes(void *graph, void **nodes, size_t *count);
int cuGraphGetEdges(void *graph, void **from, void **to, size_t *count);
int cuGraphInstantiateWithFlags(void **exec, void *graph, ull flags);
int cuGraphLaunch(void *exec, void *stream);
int cuGraphExecDestroy(void *exec);
int cuGraphExecUpdate_v2(void *exec, void *graph, cu_update_result *result);
int cuDeviceGraphMemTrim(int device);
int cuDeviceGetGraphMemAttribute(int device, int attribute, void *value);

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)

// Bytes taken on the current device by all processes.
static inline long long used_now(void)
{
	size_t free_bytes = 0, total = 0;
	CHECK_OK(cuMemGetInfo_v2(&free_bytes, &total));
	return (long long)(total - free_bytes);
}

// Makes a test independent of everything around it and initialises the driver
// with a current primary context of device 0. Variables that the test set stay.
static inline void start(void)
{
	void *context;
	setenv("NULLCUDA_SHARED", "none", 0);
	CHECK_OK(cuInit(0));
	CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK_OK(cuCtxSetCurrent(context));
}

// Resident pages of the process, for tests of lazy backing.
static inline long resident_pages(void)
{
	long size = 0, resident = -1;
	FILE *statm = fopen("/proc/self/statm", "r");
	if (statm && fscanf(statm, "%ld %ld", &size, &resident) != 2)
		resident = -1;
	if (statm)
		fclose(statm);
	return resident;
}

// Sets NULLCUDA_LOG to a new temporary file and returns its path, which lives as
// long as the program and is removed with it.
static inline void remove_log(void);
static char test_log_path[64];
static inline const char *log_to_file(void)
{
	snprintf(test_log_path, sizeof test_log_path, "/tmp/nullcuda-test-XXXXXX");
	close(mkstemp(test_log_path));
	setenv("NULLCUDA_LOG", test_log_path, 1);
	atexit(remove_log);
	return test_log_path;
}
static inline void remove_log(void) { unlink(test_log_path); }

// One line of the log.
struct log_line {
	ull sequence, time, address, requested, charged, live_requested, live_charged;
	int device;
	char kind[16], op[8];
};

// Reads the next line. False at the end; a line that does not parse is a failure.
static inline int read_log(FILE *log, struct log_line *line)
{
	int fields = fscanf(log, "%llu %llu %d %15s %7s 0x%llx %llu %llu %llu %llu", &line->sequence, &line->time,
	                    &line->device, line->kind, line->op, &line->address, &line->requested, &line->charged,
	                    &line->live_requested, &line->live_charged);
	if (fields != EOF)
		CHECK_EQ(fields, 10);
	return fields == 10;
}

#endif
