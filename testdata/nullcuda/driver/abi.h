// The part of the CUDA driver ABI that the null driver speaks: x86-64 and
// AArch64 Linux, 64-bit device pointers. Declared here by hand so that building
// needs no vendor header; test/driver_abi.c checks the layouts against one.
#ifndef NULLCUDA_ABI_H
#define NULLCUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t cu_ptr;   // device pointer
typedef int cu_device;     // ordinal
typedef int cu_result;

enum {
	CU_OK = 0,
	CU_INVALID_VALUE = 1,
	CU_OUT_OF_MEMORY = 2,
	CU_NOT_INITIALIZED = 3,
	CU_NO_DEVICE = 100,
	CU_INVALID_DEVICE = 101,
	CU_INVALID_IMAGE = 200,
	CU_INVALID_CONTEXT = 201,
	CU_MAP_FAILED = 205,
	CU_ALREADY_MAPPED = 208,
	CU_UNSUPPORTED_LIMIT = 215,
	CU_FILE_NOT_FOUND = 301,
	CU_OPERATING_SYSTEM = 304,
	CU_INVALID_HANDLE = 400,
	CU_ILLEGAL_STATE = 401,
	CU_NOT_FOUND = 500,
	CU_NOT_READY = 600,
	CU_PEER_ACCESS_ALREADY_ENABLED = 704,
	CU_PEER_ACCESS_NOT_ENABLED = 705,
	CU_PRIMARY_CONTEXT_ACTIVE = 708,
	CU_CONTEXT_IS_DESTROYED = 709,
	CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CU_HOST_MEMORY_NOT_REGISTERED = 713,
	CU_NOT_PERMITTED = 800,
	CU_NOT_SUPPORTED = 801,
	CU_STREAM_CAPTURE_UNSUPPORTED = 900,
	CU_STREAM_CAPTURE_UNMATCHED = 903,
	CU_GRAPH_EXEC_UPDATE_FAILURE = 910,
	CU_INVALID_RESOURCE_TYPE = 914,
	CU_INVALID_RESOURCE_CONFIGURATION = 915,
	CU_STREAM_DETACHED = 917,
};

enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2, CU_MEMORY_ARRAY = 3, CU_MEMORY_UNIFIED = 4 };

typedef struct { unsigned char bytes[16]; } cu_uuid;
typedef struct { unsigned char data[64]; } cu_ipc_handle;
typedef struct { unsigned char data[64]; } cu_pool_export;

enum { CU_LOCATION_NONE, CU_LOCATION_DEVICE, CU_LOCATION_HOST, CU_LOCATION_HOST_NUMA,
       CU_LOCATION_HOST_NUMA_CURRENT };
typedef struct { int type; int id; } cu_location;

enum { CU_ALLOCATION_PINNED = 1, CU_ALLOCATION_MANAGED = 2 };
enum { CU_HANDLE_NONE = 0, CU_HANDLE_FD = 1, CU_HANDLE_FABRIC = 8 };
typedef struct { unsigned char data[64]; } cu_fabric_handle;
enum { CU_ACCESS_NONE = 0, CU_ACCESS_READ = 1, CU_ACCESS_READ_WRITE = 3 };

typedef struct {
	int type;
	int handle_types;
	cu_location location;
	void *win32;
	struct {
		unsigned char compression, gpudirect;
		unsigned short usage;
		unsigned char reserved[4];
	} flags;
} cu_allocation_prop;

typedef struct { cu_location location; int flags; } cu_access_desc;

typedef struct {
	int type;
	int handle_types;
	cu_location location;
	void *win32;
	size_t max_size;
	unsigned short usage;
	unsigned char gpudirect;
	unsigned char reserved[53];
} cu_pool_props;

// One side of a 2D copy is not a struct in the ABI; the fields are flattened.
typedef struct {
	size_t src_x, src_y;
	int src_type;
	const void *src_host;
	cu_ptr src_device;
	void *src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	int dst_type;
	void *dst_host;
	cu_ptr dst_device;
	void *dst_array;
	size_t dst_pitch;
	size_t width, height;
} cu_copy2d;

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER share this layout: the reserved words of
// the first are the contexts of the second.
typedef struct {
	size_t src_x, src_y, src_z, src_lod;
	int src_type;
	const void *src_host;
	cu_ptr src_device;
	void *src_array;
	void *src_context;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	cu_ptr dst_device;
	void *dst_array;
	void *dst_context;
	size_t dst_pitch, dst_height;
	size_t width, height, depth;
} cu_copy3d;

typedef struct {
	size_t width, height;
	int format;
	unsigned channels;
} cu_array_desc;

typedef struct {
	size_t width, height, depth;
	int format;
	unsigned channels;
	unsigned flags;
} cu_array3d_desc;

typedef struct {
	size_t size, alignment;
	unsigned reserved[4];
} cu_array_requirements;

// The layout of a sparse array: tiles of elements, and the levels that are smaller
// than a tile together in one tail.
typedef struct {
	unsigned tile_width, tile_height, tile_depth;
	unsigned tail_first_level;
	unsigned long long tail_bytes;
	unsigned flags;
	unsigned reserved[4];
} cu_sparse_properties;

enum { CU_ARRAY_LAYERED = 0x01, CU_ARRAY_CUBEMAP = 0x04, CU_ARRAY_SPARSE = 0x40, CU_ARRAY_DEFERRED_MAPPING = 0x80 };
enum { CU_RESOURCE_ARRAY = 0, CU_RESOURCE_MIPMAP = 1 };
enum { CU_SUBRESOURCE_LEVEL = 0, CU_SUBRESOURCE_TAIL = 1 };
enum { CU_TILES_MAP = 1, CU_TILES_UNMAP = 2 };

// One change of cuMemMapArrayAsync.
typedef struct {
	int resource_type;
	void *resource;
	int subresource_type;
	union {
		struct { unsigned level, layer, x, y, z, width, height, depth; } sparse_level;
		struct { unsigned layer; unsigned long long offset, size; } tail;
	};
	int operation;
	int handle_type;
	uint64_t handle;
	unsigned long long offset;
	unsigned device_mask;
	unsigned flags;
	unsigned reserved[2];
} cu_array_map;

// Memory of another API. The handle is a file descriptor or a pointer.
enum { CU_EXTERNAL_OPAQUE_FD = 1 };
typedef struct {
	int type;
	union {
		int fd;
		struct { void *handle; const void *name; } win32;
	};
	unsigned long long size;
	unsigned flags;
	unsigned reserved[16]; // absent from the runtime's struct before 13
} cu_external_memory;

typedef struct {
	unsigned long long offset, size;
	unsigned flags;
	unsigned reserved[16];
} cu_external_buffer;

typedef struct {
	unsigned long long offset;
	cu_array3d_desc array;
	unsigned levels;
	unsigned reserved[16];
} cu_external_mipmap;

typedef struct {
	unsigned devices;
	size_t size;
	unsigned long long handle_types, flags;
} cu_multicast_prop;

enum { CU_RESOURCE_SM = 1 };
typedef struct cu_dev_resource {
	int type;
	unsigned char internal[92]; // the driver's
	union {
		struct { unsigned count, min_partition, alignment, flags, locality; } sm;
		unsigned char bytes[40];
	};
	struct cu_dev_resource *next;
} cu_dev_resource;

typedef struct {
	int max_threads_per_block, max_threads_dim[3], max_grid_size[3];
	int shared_mem_per_block, total_constant_memory, simd_width, mem_pitch;
	int regs_per_block, clock_rate, texture_align;
} cu_device_prop;

typedef struct {
	unsigned grid[3], block[3];
	unsigned shared_bytes;
	void *stream;
	void *attributes;
	unsigned attribute_count;
} cu_launch_config;

typedef struct {
	void *function;
	unsigned grid[3], block[3];
	unsigned shared_bytes;
	void **params;
	void **extra;
	void *kernel;   // absent from version 1
	void *context;  // absent from version 1
} cu_kernel_node;

typedef struct {
	cu_ptr dst;
	size_t pitch;
	unsigned value, element_size;
	size_t width, height;
	void *context;  // absent from version 1
} cu_memset_node;

typedef void (*cu_host_fn)(void *user);
typedef struct {
	cu_host_fn fn;
	void *user;
} cu_host_node;

typedef struct {
	cu_pool_props pool;
	const cu_access_desc *access;
	size_t access_count;
	size_t size;    // in
	cu_ptr address; // out
} cu_alloc_node;

typedef struct {
	int flags, reserved;
	void *context;
	cu_copy3d copy;
} cu_memcpy_node;

typedef struct {
	int type;
	int reserved0[3];
	union {
		long long reserved1[29];
		cu_kernel_node kernel;
		cu_memcpy_node copy;
		cu_memset_node set;
		cu_host_node host;
		void *child;
		void *event;
		cu_alloc_node alloc;
		cu_ptr free_address;
	};
	long long reserved2;
} cu_node_params;

typedef struct { unsigned char from_port, to_port, type, reserved[5]; } cu_edge_data;

typedef struct {
	uint64_t flags;
	void *upload_stream;
	void *error_node;
	int result;
} cu_instantiate_params;

typedef struct { int result; void *error_node, *error_from_node; } cu_update_result;

typedef struct {
	int source_order;
	cu_location src_hint, dst_hint;
	unsigned flags;
} cu_copy_attributes;

typedef struct {
	int type; // 1 pointer, 2 array
	union {
		struct { cu_ptr ptr; size_t row_length, layer_height; cu_location hint; } ptr;
		struct { void *array; size_t x, y, z; } array;
	};
} cu_copy_operand;

typedef struct {
	cu_copy_operand src, dst;
	size_t width, height, depth;
	int source_order;
	unsigned flags;
} cu_copy3d_op;

#endif
