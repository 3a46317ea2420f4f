// SPDX-License-Identifier: Apache-2.0
// Takes a known amount of every kind of memory and prints, as JSON, what a recorder must have seen. Exit status 1 if CUDA refuses anything.
#include "memtrace.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

static const size_t MIB = size_t(1) << 20;

static void demand(int status, const char *what)
{
  if (status == 0) return;
  std::fprintf(stderr, "%s: error %d\n", what, status);
  std::exit(1);
}

// The driver's virtual memory calls are reached as libraries do it: through the runtime, without linking libcuda.
template <typename Function> static Function driver(const char *name)
{
  void *address = nullptr;
  cudaDriverEntryPointQueryResult found;
  demand(cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found), name);
  if (address == nullptr) demand(1, name);
  return reinterpret_cast<Function>(address);
}

struct physical {
  CUmemGenericAllocationHandle handle;
  CUdeviceptr address;
  size_t size;
};

static physical take_physical()
{
  memtrace::tag scope("vmm");
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  physical p = {};
  demand(driver<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity")(&p.size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "granularity");
  p.size *= 3;
  demand(driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&p.address, p.size, 0, 0, 0), "reserve");
  demand(driver<decltype(&cuMemCreate)>("cuMemCreate")(&p.handle, p.size, &prop, 0), "create");
  demand(driver<decltype(&cuMemMap)>("cuMemMap")(p.address, p.size, 0, p.handle, 0), "map");
  return p;
}

static void give_back(const physical &p)
{
  demand(driver<decltype(&cuMemRelease)>("cuMemRelease")(p.handle), "release"); // before the unmapping, as libraries do
  demand(driver<decltype(&cuMemUnmap)>("cuMemUnmap")(p.address, p.size), "unmap");
  demand(driver<decltype(&cuMemAddressFree)>("cuMemAddressFree")(p.address, p.size), "address free");
}

int main()
{
  MEMTRACE_TAG_PUSH("kinds");
  void *device[3], *stream_ordered, *managed, *host;
  cudaStream_t stream;
  demand(cudaStreamCreate(&stream), "stream");
  for (void *&block : device) demand(cudaMalloc(&block, 10 * MIB), "cudaMalloc");
  demand(cudaMallocAsync(&stream_ordered, 4 * MIB, stream), "cudaMallocAsync");
  physical p = take_physical();
  demand(cudaMallocManaged(&managed, 8 * MIB), "cudaMallocManaged");
  demand(cudaMallocHost(&host, 16 * MIB), "cudaMallocHost");

  demand(cudaFreeHost(host), "cudaFreeHost");
  demand(cudaFree(managed), "cudaFree");
  give_back(p);
  demand(cudaFreeAsync(stream_ordered, stream), "cudaFreeAsync");
  demand(cudaStreamSynchronize(stream), "synchronize");
  for (void *block : device) demand(cudaFree(block), "cudaFree");
  MEMTRACE_TAG_POP();
  std::printf("{\"driver\": %zu, \"driver_count\": 5, \"vmm\": %zu, \"managed\": %zu, \"host\": %zu}\n", 34 * MIB + p.size, p.size, 8 * MIB, 16 * MIB);
  return 0;
}
