// Kernel launches: checked, handed to the driver, which runs nothing.
#include "registry.h"
#include "runtime.h"

static int check(rt_dim3 grid, rt_dim3 block)
{
	enum { THREADS_PER_BLOCK = 1024 };
	uint64_t threads = (uint64_t)block.x * block.y * block.z;
	bool fits = block.x <= THREADS_PER_BLOCK && block.y <= THREADS_PER_BLOCK && block.z <= THREADS_PER_BLOCK &&
	            threads && threads <= THREADS_PER_BLOCK;
	return fits && grid.x && grid.y && grid.z ? RT_OK : RT_INVALID_CONFIGURATION;
}

// A driver older than kernels that belong to no context cannot be given ours; the
// launch then ends here, with nothing to do anyway.
static int find(const void *host, struct rt_kernel *kernel)
{
	RT_TRY(rt_enter());
	return rt_kernel_find(host, kernel);
}

static int launch_handle(void *handle, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream)
{
	RT_TRY(check(grid, block));
	if (shared > UINT32_MAX)
		return RT_INVALID_VALUE;
	return rt_calls->cuLaunchKernel(handle, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared,
	                                stream, params, NULL);
}

static int launch(const void *host, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream)
{
	struct rt_kernel kernel;
	int error = find(host, &kernel);
	if (error == RT_NOT_SUPPORTED)
		return check(grid, block);
	RT_TRY(error);
	return launch_handle(kernel.handle, grid, block, params, shared, stream);
}

static int launch_cooperative(const void *host, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream)
{
	struct rt_kernel kernel;
	int error = find(host, &kernel);
	if (error == RT_NOT_SUPPORTED)
		return check(grid, block);
	RT_TRY(error);
	RT_TRY(check(grid, block));
	if (shared > UINT32_MAX)
		return RT_INVALID_VALUE;
	return rt_calls->cuLaunchCooperativeKernel(kernel.handle, grid.x, grid.y, grid.z, block.x, block.y, block.z,
	                                           (unsigned)shared, stream, params);
}

static int launch_config(const rt_launch_config *config, const void *host, void **params)
{
	struct rt_kernel kernel;
	if (!config)
		return RT_INVALID_VALUE;
	int error = find(host, &kernel);
	if (error == RT_NOT_SUPPORTED)
		return check(config->grid, config->block);
	RT_TRY(error);
	RT_TRY(check(config->grid, config->block));
	if (config->shared_bytes > UINT32_MAX)
		return RT_INVALID_VALUE;
	const cu_launch_config driver = {
		.grid = {config->grid.x, config->grid.y, config->grid.z},
		.block = {config->block.x, config->block.y, config->block.z},
		.shared_bytes = (unsigned)config->shared_bytes,
		.stream = config->stream,
		.attributes = config->attributes,
		.attribute_count = config->attribute_count,
	};
	return rt_calls->cuLaunchKernelEx(&driver, kernel.handle, params, NULL);
}

RT_API RT_PTSZ(cudaLaunchKernel)(
	const void *host, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream)
{
	return rt_done(launch(host, grid, block, params, shared, stream));
}

RT_API RT_PTSZ(cudaLaunchCooperativeKernel)(const void *host, rt_dim3 grid, rt_dim3 block, void **params, size_t shared,
                                           void *stream)
{
	return rt_done(launch_cooperative(host, grid, block, params, shared, stream));
}

RT_API RT_PTSZ(cudaLaunchKernelExC)(const rt_launch_config *config, const void *host, void **params)
{
	return rt_done(launch_config(config, host, params));
}

#if RT_MAJOR >= 12
// What a compiler from 12 on emits: the handle is looked up once per kernel.
RT_API RT_PTSZ(__cudaLaunchKernel)(
	void *kernel, rt_dim3 grid, rt_dim3 block, void **params, size_t shared, void *stream)
{
	int error = rt_enter();
	return rt_done(error == RT_OK ? launch_handle(kernel, grid, block, params, shared, stream) : error);
}
#endif
