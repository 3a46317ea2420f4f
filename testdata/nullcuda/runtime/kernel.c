// What can be asked about kernels, and the launch configuration that the
// triple-chevron syntax passes through thread-local storage.
#include "registry.h"
#include "runtime.h"

#include <string.h>

enum {
	ATTRIBUTE_MAX_DYNAMIC_SHARED = 8,
	ATTRIBUTE_LAST = 15,
	SHARED_BYTES_PER_BLOCK_OPTIN = 227 << 10,
	SHARED_BYTES_PER_BLOCK = 48 << 10,
	THREADS_PER_BLOCK = 1024,
	THREADS_PER_SM = 2048,
	BLOCKS_PER_SM = 32,
};

// Nested configurations do not occur: the pop is the launch stub's first act.
static __thread struct {
	rt_dim3 grid, block;
	size_t shared;
	void *stream;
	bool pushed;
} configuration;

RT_EXPORT unsigned __cudaPushCallConfiguration(rt_dim3 grid, rt_dim3 block, size_t shared, void *stream)
{
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared = shared;
	configuration.stream = stream;
	configuration.pushed = true;
	return 0;
}

RT_API __cudaPopCallConfiguration(rt_dim3 *grid, rt_dim3 *block, size_t *shared, void **stream)
{
	if (!configuration.pushed)
		return rt_done(RT_MISSING_CONFIGURATION);
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*stream = configuration.stream;
	configuration.pushed = false;
	return RT_OK;
}

// RT_NOT_SUPPORTED only says that the driver cannot be shown the kernel.
static int find(const void *host, struct rt_kernel *kernel)
{
	*kernel = (struct rt_kernel){0};
	RT_TRY(rt_enter());
	int error = rt_kernel_find(host, kernel);
	return error == RT_NOT_SUPPORTED ? RT_OK : error;
}

static int get_attributes(rt_func_attributes *out, const void *host)
{
	struct rt_kernel kernel;
	if (!out)
		return RT_INVALID_VALUE;
	RT_TRY(find(host, &kernel));
	memset(out, 0, sizeof *out);
	out->max_threads = THREADS_PER_BLOCK;
	out->registers = 32;
	out->ptx_version = out->binary_version = 90;
	out->max_dynamic_shared = SHARED_BYTES_PER_BLOCK;
	out->shared_carveout = -1;
	return RT_OK;
}

static int set_attribute(const void *host, int attribute, int value)
{
	struct rt_kernel kernel;
	RT_TRY(find(host, &kernel));
	if (attribute < ATTRIBUTE_MAX_DYNAMIC_SHARED || attribute > ATTRIBUTE_LAST)
		return RT_INVALID_VALUE;
	if (attribute == ATTRIBUTE_MAX_DYNAMIC_SHARED && (value < 0 || value > SHARED_BYTES_PER_BLOCK_OPTIN))
		return RT_INVALID_VALUE;
	return RT_OK;
}

static int set_config(const void *host, int config, int most)
{
	struct rt_kernel kernel;
	RT_TRY(find(host, &kernel));
	return config >= 0 && config <= most ? RT_OK : RT_INVALID_VALUE;
}

static int occupancy(int *blocks, const void *host, int block_size, size_t shared)
{
	struct rt_kernel kernel;
	RT_TRY(find(host, &kernel));
	if (!blocks || block_size <= 0)
		return RT_INVALID_VALUE;
	if (kernel.handle)
		return rt_calls->cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			blocks, kernel.handle, block_size, shared, 0);
	int fit = block_size > THREADS_PER_BLOCK ? 0 : THREADS_PER_SM / block_size;
	*blocks = fit < BLOCKS_PER_SM ? fit : BLOCKS_PER_SM;
	return RT_OK;
}

static int available_shared(size_t *bytes, const void *host, int blocks, int block_size)
{
	struct rt_kernel kernel;
	RT_TRY(find(host, &kernel));
	if (!kernel.handle)
		return RT_NOT_SUPPORTED;
	return rt_calls->cuOccupancyAvailableDynamicSMemPerBlock(bytes, kernel.handle, blocks, block_size);
}

static int get_handle(void **handle, const void *host)
{
	struct rt_kernel kernel;
	if (!handle)
		return RT_INVALID_VALUE;
	RT_TRY(rt_enter());
	RT_TRY(rt_kernel_find(host, &kernel));
	*handle = kernel.handle;
	return RT_OK;
}

#if RT_MAJOR >= 12
static int get_name(const char **name, const void *host)
{
	struct rt_kernel kernel;
	if (!name)
		return RT_INVALID_VALUE;
	RT_TRY(rt_enter());
	RT_TRY(rt_kernel_find(host, &kernel));
	*name = kernel.name;
	return RT_OK;
}
#endif

RT_API cudaFuncGetAttributes(rt_func_attributes *out, const void *host) { return rt_done(get_attributes(out, host)); }
RT_API cudaFuncSetCacheConfig(const void *host, int config) { return rt_done(set_config(host, config, 3)); }
RT_API cudaFuncSetSharedMemConfig(const void *host, int config) { return rt_done(set_config(host, config, 2)); }

RT_API cudaFuncSetAttribute(const void *host, int attribute, int value)
{
	return rt_done(set_attribute(host, attribute, value));
}

RT_API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int block_size, size_t shared)
{
	return rt_done(occupancy(blocks, host, block_size, shared));
}

RT_API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, const void *host, int block_size, size_t shared, unsigned flags)
{
	return rt_done(flags <= 1 ? occupancy(blocks, host, block_size, shared) : RT_INVALID_VALUE);
}

RT_API cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *host, int blocks, int block_size)
{
	return rt_done(available_shared(bytes, host, blocks, block_size));
}

static int clusters(int *out, const void *host, const rt_launch_config *config, bool largest)
{
	struct rt_kernel kernel;
	RT_TRY(find(host, &kernel));
	if (!config)
		return RT_INVALID_VALUE;
	if (!kernel.handle)
		return RT_NOT_SUPPORTED;
	const cu_launch_config driver = {
		.grid = {config->grid.x, config->grid.y, config->grid.z},
		.block = {config->block.x, config->block.y, config->block.z},
		.shared_bytes = (unsigned)config->shared_bytes,
		.stream = config->stream,
		.attributes = config->attributes,
		.attribute_count = config->attribute_count,
	};
	return largest ? rt_calls->cuOccupancyMaxPotentialClusterSize(out, kernel.handle, &driver)
	               : rt_calls->cuOccupancyMaxActiveClusters(out, kernel.handle, &driver);
}

RT_API cudaOccupancyMaxPotentialClusterSize(int *size, const void *host, const rt_launch_config *config)
{
	return rt_done(clusters(size, host, config, true));
}

RT_API cudaOccupancyMaxActiveClusters(int *count, const void *host, const rt_launch_config *config)
{
	return rt_done(clusters(count, host, config, false));
}

RT_API cudaGetFuncBySymbol(void **function, const void *host) { return rt_done(get_handle(function, host)); }

#if RT_MAJOR >= 12
RT_API cudaFuncGetName(const char **name, const void *host) { return rt_done(get_name(name, host)); }
RT_API cudaGetKernel(void **kernel, const void *host) { return rt_done(get_handle(kernel, host)); }
RT_API __cudaGetKernel(void **kernel, const void *host) { return rt_done(get_handle(kernel, host)); }

RT_API cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device)
{
	int error = rt_driver();
	if (error == RT_OK)
		error = rt_device_check(device);
	if (error == RT_OK && (!kernel || attribute < ATTRIBUTE_MAX_DYNAMIC_SHARED || attribute > ATTRIBUTE_LAST))
		error = RT_INVALID_VALUE;
	(void)value;
	return rt_done(error);
}
#endif
