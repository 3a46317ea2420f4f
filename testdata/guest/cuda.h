/* The few CUDA declarations that the guests need, in our own words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuMemAlloc_v2(uint64_t *out, size_t size);
int cuMemFree_v2(uint64_t address);
int cuMemAllocManaged(uint64_t *out, size_t size, unsigned flags);
int cuMemAllocHost_v2(void **out, size_t size);
int cuMemFreeHost(void *address);
int cuMemHostAlloc(void **out, size_t size, unsigned flags);
int cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
int cuMemHostUnregister(void *address);
int cuMemAllocAsync(uint64_t *out, size_t size, void *stream);
int cuMemFreeAsync(uint64_t address, void *stream);
int cuMemAllocPitch_v2(uint64_t *out, size_t *pitch, size_t width, size_t height, unsigned element);
int cuMemCreate(uint64_t *out, size_t size, const void *properties, unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuCtxSynchronize(void);
int cuCtxSetCurrent(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxAttach(void **context, unsigned flags);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDeviceGetDevResource(int device, void *resource, int type);
int cuDevResourceGenerateDesc(void **description, void *resources, unsigned count);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuGraphCreate(void **graph, unsigned flags);
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
int cuMulticastAddDevice(uint64_t object, int device);
int cuIpcGetMemHandle(void *handle, uint64_t address);
int cuMemExportToShareableHandle(void *out, uint64_t handle, int type, unsigned long long flags);
int cuMemPoolExportToShareableHandle(void *out, void *pool, int type, unsigned long long flags);
int cuMemPoolExportPointer(void *out, uint64_t address);
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);

int cudaMalloc(void **out, size_t size);
int cudaFree(void *address);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaRuntimeGetVersion(int *version);
int cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventDestroy(void *event);
int cudaSetDevice(int device);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                       int constant, int global);
