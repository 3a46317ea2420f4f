// The runtime calls that the tests make, for the major version RT_MAJOR, and how
// a test is entered: as a program, or inside a library that holds the static
// runtime and is loaded by load_host.c.
#ifndef NULLCUDA_TEST_RT_H
#define NULLCUDA_TEST_RT_H

#include "../runtime/abi.h"
#include "check.h"

#ifdef TEST_IN_LIBRARY
#define TEST_MAIN __attribute__((visibility("default"))) int test_main(void)
#define TEST_NAME(name) name " (static, in a library)"
#else
#define TEST_MAIN int main(void)
#define TEST_NAME_(name, major) name " (CUDA " #major ")"
#define TEST_NAME__(name, major) TEST_NAME_(name, major)
#define TEST_NAME(name) TEST_NAME__(name, RT_MAJOR)
#endif

int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorName(int error);
const char *cudaGetErrorString(int error);
int cudaDriverGetVersion(int *version);
int cudaRuntimeGetVersion(int *version);
int cudaGetDeviceCount(int *count);
int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaDeviceReset(void);
int cudaDeviceSynchronize(void);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaGetDeviceProperties(void *prop, int device);
int cudaGetDeviceProperties_v2(void *prop, int device);
int cudaDeviceGetPCIBusId(char *id, int length, int device);
int cudaDeviceCanAccessPeer(int *can, int device, int peer);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaDeviceDisablePeerAccess(int peer);

int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height);
int cudaMalloc3D(rt_pitched *out, rt_extent extent);
int cudaMallocManaged(void **address, size_t bytes, unsigned flags);
int cudaMallocHost(void **address, size_t bytes);
int cudaHostAlloc(void **address, size_t bytes, unsigned flags);
int cudaFreeHost(void *address);
int cudaHostRegister(void *address, size_t bytes, unsigned flags);
int cudaHostUnregister(void *address);
int cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
int cudaMemGetInfo(size_t *free_bytes, size_t *total);
int cudaPointerGetAttributes(rt_pointer_attributes *out, const void *address);
int cudaMallocAsync(void **address, size_t bytes, void *stream);
int cudaMallocAsync_ptsz(void **address, size_t bytes, void *stream);
int cudaFreeAsync(void *address, void *stream);
int cudaFreeAsync_ptsz(void *address, void *stream);
int cudaMallocFromPoolAsync(void **address, size_t bytes, void *pool, void *stream);
int cudaDeviceGetDefaultMemPool(void **pool, int device);
int cudaMemPoolCreate(void **pool, const cu_pool_props *props);
int cudaMemPoolDestroy(void *pool);
int cudaMemPoolGetAttribute(void *pool, int attribute, void *value);
int cudaMemPoolSetAttribute(void *pool, int attribute, void *value);
int cudaMemPoolTrimTo(void *pool, size_t keep);
int cudaMallocArray(void **array, const rt_channel *channel, size_t width, size_t height, unsigned flags);
int cudaMalloc3DArray(void **array, const rt_channel *channel, rt_extent extent, unsigned flags);
int cudaFreeArray(void *array);
int cudaArrayGetInfo(rt_channel *channel, rt_extent *extent, unsigned *flags, void *array);
rt_channel cudaCreateChannelDesc(int x, int y, int z, int w, int kind);
int cudaMallocMipmappedArray(
	void **mipmap, const rt_channel *channel, rt_extent extent, unsigned levels, unsigned flags);
int cudaGetMipmappedArrayLevel(void **array, void *mipmap, unsigned level);
int cudaFreeMipmappedArray(void *mipmap);
int cudaArrayGetSparseProperties(cu_sparse_properties *out, void *array);
int cudaMipmappedArrayGetSparseProperties(cu_sparse_properties *out, void *mipmap);
int cudaMemPoolExportToShareableHandle(void *out, void *pool, int type, unsigned flags);
int cudaMemPoolImportFromShareableHandle(void **pool, void *handle, int type, unsigned flags);
int cudaMemPoolExportPointer(cu_pool_export *out, void *address);
int cudaMemPoolImportPointer(void **address, void *pool, cu_pool_export *in);
int cudaImportExternalMemory(void **memory, const rt_external_memory *desc);
int cudaExternalMemoryGetMappedBuffer(void **address, void *memory, const rt_external_buffer *desc);
int cudaExternalMemoryGetMappedMipmappedArray(void **mipmap, void *memory, const rt_external_mipmap *desc);
int cudaDestroyExternalMemory(void *memory);
int cudaDeviceGraphMemTrim(int device);
#if RT_MAJOR == 12
int cudaGraphAddNode(void **node, void *graph, void *const *dependencies, size_t count, rt_node_params *params);
int cudaGraphAddNode_v2(
	void **node, void *graph, void *const *dependencies, const void *edges, size_t count, rt_node_params *params);
#elif RT_MAJOR >= 13
int cudaGraphAddNode(
	void **node, void *graph, void *const *dependencies, const void *edges, size_t count, rt_node_params *params);
int cudaMemGetDefaultMemPool(void **pool, cu_location *location, int type);
int cudaMemGetMemPool(void **pool, cu_location *location, int type);
int cudaMemSetMemPool(cu_location *location, int type, void *pool);
#endif

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpy_ptds(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaMemcpyAsync_ptsz(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind);
int cudaMemcpy3D(const rt_copy3d *copy);
int cudaMemcpy2DToArray(
	void *array, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, int kind);
int cudaMemcpy2DFromArray(
	void *to, size_t pitch, const void *array, size_t x, size_t y, size_t width, size_t height, int kind);
int cudaMemcpyToArray(void *array, size_t x, size_t y, const void *from, size_t count, int kind);
int cudaMemcpyFromArray(void *to, const void *array, size_t x, size_t y, size_t count, int kind);
int cudaMemset(void *address, int value, size_t count);
int cudaMemset2D(void *address, size_t pitch, int value, size_t width, size_t height);
int cudaMemset3D(rt_pitched area, int value, rt_extent extent);

int cudaStreamCreate(void **stream);
int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cudaStreamGetPriority(void *stream, int *priority);
int cudaStreamQuery(void *stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamDestroy(void *stream);
int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaEventElapsedTime(float *milliseconds, void *start, void *end);
int cudaEventDestroy(void *event);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaStreamIsCapturing(void *stream, int *status);
int cudaGraphCreate(void **graph, unsigned flags);
int cudaGraphGetNodes(void *graph, void **nodes, size_t *count);
int cudaGraphNodeGetType(void *node, int *type);
int cudaGraphAddMemcpyNode1D(void **node, void *graph, void *const *dependencies, size_t count, void *to,
	const void *from, size_t bytes, int kind);
int cudaGraphMemcpyNodeGetParams(void *node, rt_copy3d *out);
int cudaGraphAddKernelNode(
	void **node, void *graph, void *const *dependencies, size_t count, const rt_kernel_node *params);
int cudaGraphKernelNodeGetParams(void *node, rt_kernel_node *out);
int cudaGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphExecDestroy(void *exec);
int cudaGraphDestroy(void *graph);

void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
	void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(
	void **handle, char *host, char *device, const char *name, int external, size_t size, int constant, int global);
void __cudaRegisterManagedVar(
	void **handle, void **host, char *device, const char *name, int external, size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(rt_dim3 grid, rt_dim3 block, size_t shared, void *stream);
int __cudaPopCallConfiguration(rt_dim3 *grid, rt_dim3 *block, size_t *shared, void **stream);
int cudaLaunchKernel(const void *host, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream);
int cudaLaunchKernel_ptsz(const void *host, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream);
int cudaLaunchCooperativeKernel(
	const void *host, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream);
int cudaLaunchKernelExC(const rt_launch_config *config, const void *host, void **params);
int cudaFuncGetAttributes(rt_func_attributes *out, const void *host);
int cudaFuncSetAttribute(const void *host, int attribute, int value);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int block_size, size_t shared);
int cudaGetSymbolAddress(void **address, const void *symbol);
int cudaGetSymbolSize(size_t *size, const void *symbol);
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind);
#if RT_MAJOR >= 12
int __cudaGetKernel(void **kernel, const void *host);
int __cudaLaunchKernel(void *kernel, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream);
int cudaFuncGetName(const char **name, const void *host);
int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *status);
int cudaGetDriverEntryPoint_ptsz(const char *name, void **function, unsigned long long flags, int *status);
int cudaGetDriverEntryPointByVersion(
	const char *name, void **function, unsigned version, unsigned long long flags, int *status);
#else
int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags);
#endif

// Bytes of the current device in use.
static inline size_t rt_used(void)
{
	size_t free_bytes = 0, total = 0;
	CHECK_OK(cudaMemGetInfo(&free_bytes, &total));
	return total - free_bytes;
}

#endif
