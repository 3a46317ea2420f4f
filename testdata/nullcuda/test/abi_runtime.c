// Compares our declarations with the vendor's headers; compiled, never run.
#include <cuda_runtime_api.h>

#undef cudaGetDeviceProperties
#include <stddef.h>

#include "../runtime/abi.h"

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define AT(ours, field, theirs, member) \
	_Static_assert(offsetof(ours, field) == offsetof(theirs, member), #ours "." #field)

#define RT_PROP_MAJOR RT_MAJOR
#define RT_PROP_INT(name, count, attribute) AT(rt_device_prop, name, struct cudaDeviceProp, name);
#define RT_PROP_SIZE(name, attribute) AT(rt_device_prop, name, struct cudaDeviceProp, name);
#define RT_PROP_RAW(type, name, count) AT(rt_device_prop, name, struct cudaDeviceProp, name);
#include "../runtime/device_prop.def"
SIZE(rt_device_prop, struct cudaDeviceProp);

SIZE(rt_dim3, dim3);
SIZE(rt_extent, struct cudaExtent);
SIZE(rt_pitched, struct cudaPitchedPtr);
AT(rt_pitched, xsize, struct cudaPitchedPtr, xsize);
SIZE(rt_channel, struct cudaChannelFormatDesc);
AT(rt_channel, kind, struct cudaChannelFormatDesc, f);

SIZE(rt_copy3d, struct cudaMemcpy3DParms);
AT(rt_copy3d, src_pos, struct cudaMemcpy3DParms, srcPos);
AT(rt_copy3d, src_ptr, struct cudaMemcpy3DParms, srcPtr);
AT(rt_copy3d, dst_array, struct cudaMemcpy3DParms, dstArray);
AT(rt_copy3d, extent, struct cudaMemcpy3DParms, extent);
AT(rt_copy3d, kind, struct cudaMemcpy3DParms, kind);
SIZE(rt_copy3d_peer, struct cudaMemcpy3DPeerParms);
AT(rt_copy3d_peer, src_device, struct cudaMemcpy3DPeerParms, srcDevice);
AT(rt_copy3d_peer, dst_device, struct cudaMemcpy3DPeerParms, dstDevice);
AT(rt_copy3d_peer, extent, struct cudaMemcpy3DPeerParms, extent);

SIZE(rt_pointer_attributes, struct cudaPointerAttributes);
AT(rt_pointer_attributes, device, struct cudaPointerAttributes, device);
AT(rt_pointer_attributes, device_pointer, struct cudaPointerAttributes, devicePointer);
AT(rt_pointer_attributes, host_pointer, struct cudaPointerAttributes, hostPointer);

SIZE(rt_func_attributes, struct cudaFuncAttributes);
AT(rt_func_attributes, max_threads, struct cudaFuncAttributes, maxThreadsPerBlock);
AT(rt_func_attributes, registers, struct cudaFuncAttributes, numRegs);
AT(rt_func_attributes, binary_version, struct cudaFuncAttributes, binaryVersion);
AT(rt_func_attributes, max_dynamic_shared, struct cudaFuncAttributes, maxDynamicSharedSizeBytes);
AT(rt_func_attributes, shared_carveout, struct cudaFuncAttributes, preferredShmemCarveout);

SIZE(rt_launch_config, cudaLaunchConfig_t);
AT(rt_launch_config, shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
AT(rt_launch_config, stream, cudaLaunchConfig_t, stream);
AT(rt_launch_config, attributes, cudaLaunchConfig_t, attrs);
AT(rt_launch_config, attribute_count, cudaLaunchConfig_t, numAttrs);
SIZE(cu_launch_config, cudaLaunchConfig_t);

SIZE(rt_kernel_node, struct cudaKernelNodeParams);
AT(rt_kernel_node, shared_bytes, struct cudaKernelNodeParams, sharedMemBytes);
AT(rt_kernel_node, extra, struct cudaKernelNodeParams, extra);
SIZE(rt_memset_node, struct cudaMemsetParams);
AT(rt_memset_node, element_bytes, struct cudaMemsetParams, elementSize);
AT(rt_memset_node, height, struct cudaMemsetParams, height);

SIZE(rt_resource, struct cudaResourceDesc);
AT(rt_resource, of.pitch2d.pitch, struct cudaResourceDesc, res.pitch2D.pitchInBytes);
SIZE(rt_texture, struct cudaTextureDesc);
AT(rt_texture, max_anisotropy, struct cudaTextureDesc, maxAnisotropy);
AT(rt_texture, disable_trilinear, struct cudaTextureDesc, disableTrilinearOptimization);
SIZE(rt_resource_view, struct cudaResourceViewDesc);
AT(rt_resource_view, last_layer, struct cudaResourceViewDesc, lastLayer);

SIZE(rt_external_memory, struct cudaExternalMemoryHandleDesc);
AT(rt_external_memory, size, struct cudaExternalMemoryHandleDesc, size);
SIZE(rt_external_buffer, struct cudaExternalMemoryBufferDesc);
SIZE(rt_external_mipmap, struct cudaExternalMemoryMipmappedArrayDesc);
AT(rt_external_mipmap, extent, struct cudaExternalMemoryMipmappedArrayDesc, extent);
AT(rt_external_mipmap, levels, struct cudaExternalMemoryMipmappedArrayDesc, numLevels);
#if RT_MAJOR >= 12
SIZE(rt_node_params, struct cudaGraphNodeParams);
AT(rt_node_params, of.kernel.extra, struct cudaGraphNodeParams, kernel.extra);
AT(rt_node_params, of.copy.params, struct cudaGraphNodeParams, memcpy.copyParams);
AT(rt_node_params, of.fill.height, struct cudaGraphNodeParams, memset.height);
AT(rt_node_params, of.alloc.address, struct cudaGraphNodeParams, alloc.dptr);
_Static_assert(
	(int)cudaGraphNodeTypeMemFree == RT_NODE_FREE && (int)cudaGraphNodeTypeMemset == RT_NODE_FILL, "node types");
#endif

// Structures that pass through to the driver as they are.
SIZE(cu_pool_props, struct cudaMemPoolProps);
AT(cu_pool_props, location, struct cudaMemPoolProps, location);
SIZE(cu_access_desc, struct cudaMemAccessDesc);
SIZE(cu_location, struct cudaMemLocation);
SIZE(cu_ipc_handle, cudaIpcMemHandle_t);
SIZE(cu_sparse_properties, struct cudaArraySparseProperties);
SIZE(cu_pool_export, struct cudaMemPoolPtrExportData);
SIZE(cu_array_requirements, struct cudaArrayMemoryRequirements);
SIZE(cu_host_node, struct cudaHostNodeParams);
SIZE(cu_alloc_node, struct cudaMemAllocNodeParams);
AT(cu_alloc_node, address, struct cudaMemAllocNodeParams, dptr);

#if RT_MAJOR == 13 // the youngest header knows every error
#define RT_ERROR(code, name, text) _Static_assert((int)name == (code), #name);
#include "../runtime/error.def"
#endif
_Static_assert(CUDART_VERSION == RT_VERSION, "version");
_Static_assert(
	(int)cudaMemcpyDeviceToDevice == RT_DEVICE_TO_DEVICE && (int)cudaMemcpyDefault == RT_COPY_DEFAULT, "copy kinds");
_Static_assert((int)cudaMemoryTypeManaged == RT_MEMORY_MANAGED, "memory types");
_Static_assert((int)cudaErrorInvalidConfiguration == RT_INVALID_CONFIGURATION &&
               (int)cudaErrorInvalidDeviceFunction == RT_INVALID_DEVICE_FUNCTION &&
               (int)cudaErrorInvalidChannelDescriptor == RT_INVALID_CHANNEL_DESCRIPTOR, "errors");
