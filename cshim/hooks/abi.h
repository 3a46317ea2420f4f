/* The CUDA structures that hooked calls pass, declared here without vendor headers: CUDA Driver API and Runtime API
 * references, "Data Structures". */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* cudaPitchedPtr: sizes in bytes */
struct mt_cuda_pitched {
  void *ptr;
  size_t pitch, xsize, ysize;
};

/* cudaExtent: width in bytes, height and depth in rows and slices; passed by value */
struct mt_cuda_extent {
  size_t width, height, depth;
};

/* The head of CUmemAllocationProp: where the memory lives */
struct mt_cuda_vmm_prop {
  int type, handle_types;
  int location_type; /* 1: device */
  int location_id;
};

enum { CUDA_ERROR_OUT_OF_MEMORY = 2 };
enum { CUDA_ERROR_UNKNOWN = 999 }; /* returned by a wrapper whose original has vanished */

/* CUmemPoolProps and cudaMemPoolProps */
struct mt_cuda_pool_props {
  int type, handle_types;
  int location_type; /* 1: device */
  int location_id;
  void *security;
  size_t max_size;
  unsigned char rest[56];
};
_Static_assert(sizeof(struct mt_cuda_pool_props) == 88, "CUmemPoolProps");

/* CUDA_MEM_ALLOC_NODE_PARAMS and its runtime twin */
struct mt_cuda_alloc_node {
  struct mt_cuda_pool_props pool;
  const void *access;
  size_t access_count;
  size_t size;      /* in */
  uint64_t address; /* out */
};

/* The head of CUgraphNodeParams: the kind, then a union of which two members matter here. */
struct mt_cuda_node {
  int type;
  int reserved[3];
  union {
    struct mt_cuda_alloc_node alloc;
    uint64_t freed;
  };
};

enum { CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10, CU_GRAPH_NODE_TYPE_MEM_FREE = 11 };

/* CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR: extents in elements */
struct mt_cuda_array {
  size_t width, height;
  int format;
  unsigned channels;
};
struct mt_cuda_array3d {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

/* cudaChannelFormatDesc: bits of each channel */
struct mt_cuda_channels {
  int x, y, z, w;
  int kind;
};

/* CUipcMemHandle, passed by value */
struct mt_cuda_ipc {
  char bytes[64];
};

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC and its runtime twin */
struct mt_cuda_external {
  int type;
  union {
    int fd;
    const void *pointers[2];
  } handle;
  unsigned long long size;
  unsigned flags;
};

/* CUDA_EXTERNAL_MEMORY_BUFFER_DESC and its runtime twin */
struct mt_cuda_external_buffer {
  unsigned long long offset, size;
  unsigned flags;
};

/* CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC */
struct mt_cuda_external_mipmap {
  unsigned long long offset;
  struct mt_cuda_array3d array;
  unsigned levels;
};

/* cudaExternalMemoryMipmappedArrayDesc */
struct mt_cuda_external_mipmap_rt {
  unsigned long long offset;
  struct mt_cuda_channels channels;
  struct mt_cuda_extent extent;
  unsigned flags, levels;
};

/* CUmulticastObjectProp */
struct mt_cuda_multicast {
  unsigned devices;
  size_t size;
  unsigned long long handle_types, flags;
};

/* CUarrayMapInfo: one change of cuMemMapArrayAsync */
struct mt_cuda_tiles {
  int resource_type;
  uint64_t resource;
  int subresource_type;
  union {
    struct {
      unsigned level, layer, x, y, z, width, height, depth;
    } level; /* subresource_type 0 */
    struct {
      unsigned layer;
      unsigned long long offset, size;
    } tail; /* subresource_type 1 */
  } at;
  int operation; /* 1 map, 2 unmap */
  int handle_type;
  uint64_t handle;
  unsigned long long offset;
  unsigned device_mask, flags, reserved[2];
};
