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
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);

int cudaMalloc(void **out, size_t size);
int cudaFree(void *address);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaRuntimeGetVersion(int *version);
