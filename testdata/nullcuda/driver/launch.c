// Functions and launches. A kernel runs nothing; a host function really runs, on
// the calling thread.
#include "capture.h"
#include "context.h"
#include "module.h"

#include <string.h>

enum { THREADS_PER_BLOCK = 1024, THREADS_PER_SM = 2048, BLOCKS_PER_SM = 32, SHARED_PER_SM = 228 << 10 };

static cu_result find(void *handle, struct nc_function **function)
{
	NC_ENTER();
	*function = nc_function_find(handle);
	return *function ? CU_OK : CU_INVALID_HANDLE;
}

CU_API cuFuncGetAttribute(int *value, int attribute, void *handle)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (!value || attribute < 0 || attribute >= NC_FUNCTION_ATTRIBUTES)
		return CU_INVALID_VALUE;
	*value = function->attributes[attribute];
	return CU_OK;
}

CU_API cuFuncSetAttribute(void *handle, int attribute, int value)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (attribute < 0 || attribute >= NC_FUNCTION_ATTRIBUTES)
		return CU_INVALID_VALUE;
	function->attributes[attribute] = value;
	return CU_OK;
}

static cu_result check_config(void *handle, int config, int most)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	return config < 0 || config > most ? CU_INVALID_VALUE : CU_OK;
}

CU_API cuFuncSetCacheConfig(void *handle, int config) { return check_config(handle, config, 3); }
CU_API cuFuncSetSharedMemConfig(void *handle, int config) { return check_config(handle, config, 2); }

CU_API cuFuncGetModule(void **module, void *handle)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (!module)
		return CU_INVALID_VALUE;
	*module = function->module;
	return CU_OK;
}

CU_API cuFuncGetName(const char **name, void *handle)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (!name)
		return CU_INVALID_VALUE;
	*name = function->name;
	return CU_OK;
}

CU_API cuFuncIsLoaded(int *state, void *handle)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (!state)
		return CU_INVALID_VALUE;
	*state = 1;
	return CU_OK;
}

CU_API cuFuncLoad(void *handle)
{
	struct nc_function *function;
	return find(handle, &function);
}

static cu_result launch(const cu_kernel_node *kernel, void *stream)
{
	struct nc_function *function;
	bool captured;
	NC_TRY(find(kernel->function, &function));
	uint64_t threads = (uint64_t)kernel->block[0] * kernel->block[1] * kernel->block[2];
	if (!threads || threads > THREADS_PER_BLOCK || !kernel->grid[0] || !kernel->grid[1] || !kernel->grid[2])
		return CU_INVALID_VALUE;
	const struct nc_work work = {.type = NC_NODE_KERNEL, .kernel = *kernel};
	return nc_capture_submit(stream, &work, &captured);
}

CU_API cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared_bytes, void *stream, void **params, void **extra)
{
	const cu_kernel_node kernel = {function, {gx, gy, gz}, {bx, by, bz}, shared_bytes, params, extra, NULL, NULL};
	return launch(&kernel, stream);
}

CU_API cuLaunchKernelEx(const cu_launch_config *config, void *function, void **params, void **extra)
{
	NC_TRY(nc_init_check());
	if (!config || (config->attribute_count && !config->attributes))
		return CU_INVALID_VALUE;
	cu_kernel_node kernel = {
		.function = function, .shared_bytes = config->shared_bytes, .params = params, .extra = extra};
	memcpy(kernel.grid, config->grid, sizeof kernel.grid);
	memcpy(kernel.block, config->block, sizeof kernel.block);
	return launch(&kernel, config->stream);
}

CU_API cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared_bytes, void *stream, void **params)
{
	return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, NULL);
}

CU_API cuLaunchHostFunc(void *stream, cu_host_fn fn, void *user)
{
	bool captured;
	NC_TRY(nc_init_check());
	if (!fn)
		return CU_INVALID_VALUE;
	const struct nc_work work = {.type = NC_NODE_HOST, .host = {fn, user}};
	NC_TRY(nc_capture_submit(stream, &work, &captured));
	if (!captured)
		fn(user);
	return CU_OK;
}

CU_API cuLaunchHostFunc_v2(void *stream, cu_host_fn fn, void *user, unsigned mode)
{
	(void)mode;
	return cuLaunchHostFunc(stream, fn, user);
}

CU_API cuStreamAddCallback(
	void *handle, void (*callback)(void *stream, cu_result status, void *user), void *user, unsigned flags)
{
	struct nc_stream *stream;
	NC_TRY(nc_init_check());
	if (!callback || flags)
		return CU_INVALID_VALUE;
	pthread_mutex_lock(&nc_lock);
	cu_result result = nc_stream_from_handle(handle, &stream);
	if (result == CU_OK && stream->capture)
		result = CU_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_unlock(&nc_lock);
	if (result == CU_OK)
		callback(handle, CU_OK, user);
	return result;
}

CU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, void *handle, int block_size, size_t shared, unsigned flags)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (!blocks || block_size <= 0 || flags > 1)
		return CU_INVALID_VALUE;
	int fit = block_size > THREADS_PER_BLOCK ? 0 : THREADS_PER_SM / block_size;
	if (fit > BLOCKS_PER_SM)
		fit = BLOCKS_PER_SM;
	if (shared && (size_t)fit > SHARED_PER_SM / shared)
		fit = (int)(SHARED_PER_SM / shared);
	*blocks = fit;
	return CU_OK;
}

CU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *handle, int block_size, size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, block_size, shared, 0);
}

CU_API cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, void *handle, size_t (*shared_of)(int block),
                                                 size_t shared, int limit, unsigned flags)
{
	int size = limit > 0 && limit < THREADS_PER_BLOCK ? limit : THREADS_PER_BLOCK, blocks;
	if (!grid || !block)
		return CU_INVALID_VALUE;
	if (shared_of)
		shared = shared_of(size);
	NC_TRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, handle, size, shared, flags));
	*block = size;
	*grid = blocks * 132;
	return CU_OK;
}

CU_API cuOccupancyMaxPotentialBlockSize(
	int *grid, int *block, void *handle, size_t (*shared_of)(int block), size_t shared, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared_of, shared, limit, 0);
}

CU_API cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, void *handle, int blocks, int block_size)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (!bytes || blocks <= 0 || block_size <= 0)
		return CU_INVALID_VALUE;
	*bytes = SHARED_PER_SM / (size_t)blocks;
	return CU_OK;
}

CU_API cuOccupancyMaxPotentialClusterSize(int *size, void *handle, const cu_launch_config *config)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (!size || !config)
		return CU_INVALID_VALUE;
	*size = 8;
	return CU_OK;
}

CU_API cuOccupancyMaxActiveClusters(int *count, void *handle, const cu_launch_config *config)
{
	struct nc_function *function;
	NC_TRY(find(handle, &function));
	if (!count || !config)
		return CU_INVALID_VALUE;
	*count = 132 / 8;
	return CU_OK;
}
