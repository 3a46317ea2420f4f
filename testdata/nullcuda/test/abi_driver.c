// Compares our declarations of the driver's ABI with NVIDIA's header, which is
// the oracle here and nowhere else. Built only by test-nullcuda-abi.
#include "../driver/abi.h"
#include "check.h"

#include <cuda.h>

#define SAME_SIZE(ours, theirs) CHECK_EQ(sizeof(ours), sizeof(theirs))
#define SAME_FIELD(ours, field, theirs, their_field) CHECK_EQ(offsetof(ours, field), offsetof(theirs, their_field))
#define SAME_VALUE(ours, theirs) CHECK_EQ(ours, theirs)

static void check_errors(void)
{
	SAME_VALUE(CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
	SAME_VALUE(CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
	SAME_VALUE(CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
	SAME_VALUE(CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
	SAME_VALUE(CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
	SAME_VALUE(CU_MAP_FAILED, CUDA_ERROR_MAP_FAILED);
	SAME_VALUE(CU_UNSUPPORTED_LIMIT, CUDA_ERROR_UNSUPPORTED_LIMIT);
	SAME_VALUE(CU_FILE_NOT_FOUND, CUDA_ERROR_FILE_NOT_FOUND);
	SAME_VALUE(CU_OPERATING_SYSTEM, CUDA_ERROR_OPERATING_SYSTEM);
	SAME_VALUE(CU_INVALID_RESOURCE_TYPE, CUDA_ERROR_INVALID_RESOURCE_TYPE);
	SAME_VALUE(CU_INVALID_RESOURCE_CONFIGURATION, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	SAME_VALUE(CU_STREAM_DETACHED, CUDA_ERROR_STREAM_DETACHED);
	SAME_VALUE(CU_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
	SAME_VALUE(CU_ILLEGAL_STATE, CUDA_ERROR_ILLEGAL_STATE);
	SAME_VALUE(CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
	SAME_VALUE(CU_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	SAME_VALUE(CU_PRIMARY_CONTEXT_ACTIVE, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
	SAME_VALUE(CU_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	SAME_VALUE(CU_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	SAME_VALUE(CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
	SAME_VALUE(CU_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	SAME_VALUE(CU_STREAM_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	SAME_VALUE(CU_GRAPH_EXEC_UPDATE_FAILURE, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
}

static void check_memory_structs(void)
{
	SAME_SIZE(cu_uuid, CUuuid);
	SAME_SIZE(cu_ipc_handle, CUipcMemHandle);
	SAME_SIZE(cu_location, CUmemLocation);
	SAME_SIZE(cu_access_desc, CUmemAccessDesc);
	SAME_FIELD(cu_access_desc, flags, CUmemAccessDesc, flags);
	SAME_SIZE(cu_allocation_prop, CUmemAllocationProp);
	SAME_FIELD(cu_allocation_prop, handle_types, CUmemAllocationProp, requestedHandleTypes);
	SAME_FIELD(cu_allocation_prop, location, CUmemAllocationProp, location);
	SAME_FIELD(cu_allocation_prop, flags, CUmemAllocationProp, allocFlags);
	SAME_SIZE(cu_pool_props, CUmemPoolProps);
	SAME_FIELD(cu_pool_props, location, CUmemPoolProps, location);
	SAME_FIELD(cu_pool_props, max_size, CUmemPoolProps, maxSize);
	SAME_VALUE(CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
	SAME_VALUE(CU_LOCATION_HOST, CU_MEM_LOCATION_TYPE_HOST);
	SAME_VALUE(CU_HANDLE_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	SAME_VALUE(CU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	SAME_VALUE(CU_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
	SAME_VALUE(CU_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);
}

static void check_sharing_structs(void)
{
	SAME_SIZE(cu_pool_export, CUmemPoolPtrExportData);
	SAME_SIZE(cu_external_memory, CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
	SAME_FIELD(cu_external_memory, fd, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle);
	SAME_FIELD(cu_external_memory, size, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size);
	SAME_FIELD(cu_external_memory, flags, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, flags);
	SAME_SIZE(cu_external_buffer, CUDA_EXTERNAL_MEMORY_BUFFER_DESC);
	SAME_SIZE(cu_external_mipmap, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC);
	SAME_FIELD(cu_external_mipmap, levels, CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, numLevels);
	SAME_VALUE(CU_EXTERNAL_OPAQUE_FD, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD);
	SAME_SIZE(cu_multicast_prop, CUmulticastObjectProp);
	SAME_FIELD(cu_multicast_prop, size, CUmulticastObjectProp, size);
	SAME_FIELD(cu_multicast_prop, handle_types, CUmulticastObjectProp, handleTypes);
}

static void check_sparse_structs(void)
{
	SAME_SIZE(cu_sparse_properties, CUDA_ARRAY_SPARSE_PROPERTIES);
	SAME_FIELD(cu_sparse_properties, tail_first_level, CUDA_ARRAY_SPARSE_PROPERTIES, miptailFirstLevel);
	SAME_FIELD(cu_sparse_properties, flags, CUDA_ARRAY_SPARSE_PROPERTIES, flags);
	SAME_SIZE(cu_array_map, CUarrayMapInfo);
	SAME_FIELD(cu_array_map, resource, CUarrayMapInfo, resource);
	SAME_FIELD(cu_array_map, sparse_level.depth, CUarrayMapInfo, subresource.sparseLevel.extentDepth);
	SAME_FIELD(cu_array_map, tail.size, CUarrayMapInfo, subresource.miptail.size);
	SAME_FIELD(cu_array_map, operation, CUarrayMapInfo, memOperationType);
	SAME_FIELD(cu_array_map, handle, CUarrayMapInfo, memHandle);
	SAME_FIELD(cu_array_map, device_mask, CUarrayMapInfo, deviceBitMask);
	SAME_VALUE(CU_RESOURCE_MIPMAP, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
	SAME_VALUE(CU_SUBRESOURCE_TAIL, CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL);
	SAME_VALUE(CU_TILES_UNMAP, CU_MEM_OPERATION_TYPE_UNMAP);
	SAME_VALUE(CU_ARRAY_LAYERED, CUDA_ARRAY3D_LAYERED);
	SAME_VALUE(CU_ARRAY_CUBEMAP, CUDA_ARRAY3D_CUBEMAP);
	SAME_VALUE(CU_ARRAY_SPARSE, CUDA_ARRAY3D_SPARSE);
	SAME_VALUE(CU_ARRAY_DEFERRED_MAPPING, CUDA_ARRAY3D_DEFERRED_MAPPING);
}

static void check_resource_structs(void)
{
	SAME_SIZE(cu_dev_resource, CUdevResource);
	SAME_FIELD(cu_dev_resource, sm, CUdevResource, sm);
	SAME_FIELD(cu_dev_resource, sm.alignment, CUdevResource, sm.smCoscheduledAlignment);
	SAME_FIELD(cu_dev_resource, next, CUdevResource, nextResource);
	SAME_VALUE(CU_RESOURCE_SM, CU_DEV_RESOURCE_TYPE_SM);
}

static void check_copy_structs(void)
{
	SAME_SIZE(cu_copy2d, CUDA_MEMCPY2D);
	SAME_FIELD(cu_copy2d, src_pitch, CUDA_MEMCPY2D, srcPitch);
	SAME_FIELD(cu_copy2d, dst_device, CUDA_MEMCPY2D, dstDevice);
	SAME_FIELD(cu_copy2d, height, CUDA_MEMCPY2D, Height);
	SAME_SIZE(cu_copy3d, CUDA_MEMCPY3D);
	SAME_SIZE(cu_copy3d, CUDA_MEMCPY3D_PEER);
	SAME_FIELD(cu_copy3d, src_type, CUDA_MEMCPY3D, srcMemoryType);
	SAME_FIELD(cu_copy3d, src_pitch, CUDA_MEMCPY3D, srcPitch);
	SAME_FIELD(cu_copy3d, dst_context, CUDA_MEMCPY3D_PEER, dstContext);
	SAME_FIELD(cu_copy3d, dst_array, CUDA_MEMCPY3D, dstArray);
	SAME_FIELD(cu_copy3d, depth, CUDA_MEMCPY3D, Depth);
	SAME_SIZE(cu_copy_attributes, CUmemcpyAttributes);
	SAME_SIZE(cu_array_desc, CUDA_ARRAY_DESCRIPTOR);
	SAME_SIZE(cu_array3d_desc, CUDA_ARRAY3D_DESCRIPTOR);
	SAME_FIELD(cu_array3d_desc, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
	SAME_SIZE(cu_array_requirements, CUDA_ARRAY_MEMORY_REQUIREMENTS);
	SAME_SIZE(cu_device_prop, CUdevprop);
	SAME_VALUE(64, sizeof(CUstreamAttrValue));
	SAME_VALUE(144, sizeof(CUDA_RESOURCE_DESC));
	SAME_VALUE(104, sizeof(CUDA_TEXTURE_DESC));
	SAME_VALUE(112, sizeof(CUDA_RESOURCE_VIEW_DESC));
	SAME_VALUE(48, sizeof(CUstreamBatchMemOpParams));
}

static void check_graph_structs(void)
{
	SAME_SIZE(cu_launch_config, CUlaunchConfig);
	SAME_FIELD(cu_launch_config, stream, CUlaunchConfig, hStream);
	SAME_FIELD(cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);
	SAME_SIZE(cu_kernel_node, CUDA_KERNEL_NODE_PARAMS_v2);
	CHECK_EQ(offsetof(cu_kernel_node, kernel), sizeof(CUDA_KERNEL_NODE_PARAMS_v1));
	SAME_FIELD(cu_kernel_node, params, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
	SAME_SIZE(cu_memset_node, CUDA_MEMSET_NODE_PARAMS_v2);
	CHECK_EQ(offsetof(cu_memset_node, context), sizeof(CUDA_MEMSET_NODE_PARAMS_v1));
	SAME_SIZE(cu_host_node, CUDA_HOST_NODE_PARAMS_v1);
	SAME_SIZE(cu_alloc_node, CUDA_MEM_ALLOC_NODE_PARAMS_v1);
	SAME_FIELD(cu_alloc_node, address, CUDA_MEM_ALLOC_NODE_PARAMS_v1, dptr);
	SAME_SIZE(cu_memcpy_node, CUDA_MEMCPY_NODE_PARAMS);
	SAME_SIZE(cu_node_params, CUgraphNodeParams);
	SAME_FIELD(cu_node_params, kernel, CUgraphNodeParams, kernel);
	SAME_SIZE(cu_edge_data, CUgraphEdgeData);
	SAME_SIZE(cu_instantiate_params, CUDA_GRAPH_INSTANTIATE_PARAMS);
	SAME_FIELD(cu_instantiate_params, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
	SAME_SIZE(cu_update_result, CUgraphExecUpdateResultInfo);
}

int main(void)
{
	check_errors();
	check_memory_structs();
	check_sharing_structs();
	check_sparse_structs();
	check_resource_structs();
	check_copy_structs();
	check_graph_structs();
	return check_done("abi_driver");
}
