// The part of the CUDA runtime ABI that the null runtime speaks, for one major
// version at a time (RT_MAJOR is 11, 12 or 13). Declared here by hand so that
// building needs no vendor header; test/abi_runtime.py compares every layout
// with the vendor's headers. Driver-side layouts come from ../driver/abi.h.
#ifndef NULLCUDART_ABI_H
#define NULLCUDART_ABI_H

#include "../driver/abi.h"

#if RT_MAJOR == 11
#define RT_VERSION 11080
#elif RT_MAJOR == 12
#define RT_VERSION 12090
#elif RT_MAJOR == 13
#define RT_VERSION 13020
#else
#error "RT_MAJOR must be 11, 12 or 13"
#endif

enum {
	RT_OK = 0,
	RT_INVALID_VALUE = 1,
	RT_OUT_OF_MEMORY = 2,
	RT_INVALID_CONFIGURATION = 9,
	RT_INVALID_SYMBOL = 13,
	RT_INVALID_CHANNEL_DESCRIPTOR = 20,
	RT_INVALID_MEMCPY_DIRECTION = 21,
	RT_INSUFFICIENT_DRIVER = 35,
	RT_MISSING_CONFIGURATION = 52,
	RT_INVALID_DEVICE_FUNCTION = 98,
	RT_INVALID_DEVICE = 101,
	RT_CONTEXT_IS_DESTROYED = 709,
	RT_NOT_SUPPORTED = 801,
};

enum { RT_HOST_TO_HOST, RT_HOST_TO_DEVICE, RT_DEVICE_TO_HOST, RT_DEVICE_TO_DEVICE, RT_COPY_DEFAULT };
enum { RT_MEMORY_UNREGISTERED, RT_MEMORY_HOST, RT_MEMORY_DEVICE, RT_MEMORY_MANAGED };
enum { RT_NODE_KERNEL = 0, RT_NODE_COPY = 1, RT_NODE_FILL = 2, RT_NODE_ALLOC = 10, RT_NODE_FREE = 11 };
enum { RT_CPU_DEVICE = -1, RT_INVALID_DEVICE_ID = -2 };

typedef struct { unsigned x, y, z; } rt_dim3;
typedef struct { size_t width, height, depth; } rt_extent; // elements if an array takes part, else bytes
typedef struct { size_t x, y, z; } rt_pos;
typedef struct { void *ptr; size_t pitch, xsize, ysize; } rt_pitched;
typedef struct { int x, y, z, w, kind; } rt_channel; // bits of each component

typedef struct {
	void *src_array;
	rt_pos src_pos;
	rt_pitched src_ptr;
	void *dst_array;
	rt_pos dst_pos;
	rt_pitched dst_ptr;
	rt_extent extent;
	int kind;
} rt_copy3d;

typedef struct {
	void *src_array;
	rt_pos src_pos;
	rt_pitched src_ptr;
	int src_device;
	void *dst_array;
	rt_pos dst_pos;
	rt_pitched dst_ptr;
	int dst_device;
	rt_extent extent;
} rt_copy3d_peer;

typedef struct {
	int type, device;
	void *device_pointer, *host_pointer;
#if RT_MAJOR >= 13
	long reserved[8];
#endif
} rt_pointer_attributes;

typedef struct {
	size_t shared_bytes, const_bytes, local_bytes;
	int max_threads, registers, ptx_version, binary_version, cache_mode_ca;
	int max_dynamic_shared, shared_carveout;
#if RT_MAJOR >= 12
	int cluster_dim_required, cluster_width, cluster_height, cluster_depth;
	int cluster_scheduling, nonportable_cluster;
	int reserved[16];
#endif
} rt_func_attributes;

typedef struct {
	rt_dim3 grid, block;
	size_t shared_bytes;
	void *stream;
	void *attributes;
	unsigned attribute_count;
} rt_launch_config;

typedef struct {
	void *func;
	rt_dim3 grid, block;
	unsigned shared_bytes;
	void **params, **extra;
} rt_kernel_node;

typedef struct {
	void *destination;
	size_t pitch;
	unsigned value, element_bytes;
	size_t width, height;
} rt_memset_node;

// A node of any type, from 12 on. 13 appends to the kernel a context and the kind of
// its function, to the fill a context, and puts one in the place of copy.reserved[1].
typedef struct {
	int type;
	int reserved0[3];
	union {
		long long reserved1[29];
		rt_kernel_node kernel;
		struct { int flags, reserved[3]; rt_copy3d params; } copy;
		rt_memset_node fill;
		cu_host_node host;
		void *child;
		void *event;
		cu_alloc_node alloc;
		cu_ptr free_address;
	} of;
	long long reserved2;
} rt_node_params;

typedef struct {
	int type;
	union {
		int fd;
		struct { void *handle; const void *name; } win32;
	} handle;
	unsigned long long size;
	unsigned flags;
#if RT_MAJOR >= 13
	unsigned reserved[16];
#endif
} rt_external_memory;

typedef struct {
	unsigned long long offset, size;
	unsigned flags;
#if RT_MAJOR >= 13
	unsigned reserved[16];
#endif
} rt_external_buffer;

typedef struct {
	unsigned long long offset;
	rt_channel channel;
	rt_extent extent;
	unsigned flags, levels;
#if RT_MAJOR >= 13
	unsigned reserved[16];
#endif
} rt_external_mipmap;

typedef struct {
	int type;
	union {
		struct { void *array; } array;
		struct { void *mipmap; } mipmap;
		struct { void *pointer; rt_channel desc; size_t bytes; } linear;
		struct { void *pointer; rt_channel desc; size_t width, height, pitch; } pitch2d;
#if RT_MAJOR >= 13
		int reserved[32];
#endif
	} of;
#if RT_MAJOR >= 13
	unsigned flags;
#endif
} rt_resource;

typedef struct {
	int address_mode[3];
	int filter, read, srgb;
	float border[4];
	int normalized;
	unsigned max_anisotropy;
	int mipmap_filter;
	float mipmap_bias, min_clamp, max_clamp;
	int disable_trilinear;
#if RT_MAJOR >= 12
	int seamless_cubemap;
#endif
} rt_texture;

typedef struct {
	int format;
	size_t width, height, depth;
	unsigned first_level, last_level, first_layer, last_layer;
#if RT_MAJOR >= 13
	unsigned reserved[16];
#endif
} rt_resource_view;

#include "device_prop.h"

#endif
