// Graph nodes whose parameters differ between runtime and driver. The rest of
// the graph calls are in forward.def.
#include "copy.h"
#include "registry.h"
#include "runtime.h"

#include <string.h>

int rt_kernel_node_to_driver(const rt_kernel_node *in, cu_kernel_node *out)
{
	struct rt_kernel kernel;
	if (!in)
		return RT_INVALID_VALUE;
	RT_TRY(rt_kernel_find(in->func, &kernel));
	*out = (cu_kernel_node){
		.function = kernel.handle,
		.grid = {in->grid.x, in->grid.y, in->grid.z},
		.block = {in->block.x, in->block.y, in->block.z},
		.shared_bytes = in->shared_bytes, .params = in->params, .extra = in->extra,
	};
	return RT_OK;
}

static int add_kernel(void **node, void *graph, void *const *dependencies, size_t count, const rt_kernel_node *params)
{
	cu_kernel_node driver;
	RT_TRY(rt_enter());
	RT_TRY(rt_kernel_node_to_driver(params, &driver));
	return rt_calls->cuGraphAddKernelNode(node, graph, dependencies, count, &driver);
}

// The host's stand-in of a driver kernel is not known here, so func is the
// driver's kernel, which launches as well.
static int get_kernel(void *node, rt_kernel_node *out)
{
	cu_kernel_node driver;
	RT_TRY(rt_enter());
	if (!out)
		return RT_INVALID_VALUE;
	RT_TRY(rt_calls->cuGraphKernelNodeGetParams(node, &driver));
	*out = (rt_kernel_node){
		.func = driver.function,
		.grid = {driver.grid[0], driver.grid[1], driver.grid[2]},
		.block = {driver.block[0], driver.block[1], driver.block[2]},
		.shared_bytes = driver.shared_bytes, .params = driver.params, .extra = driver.extra,
	};
	return RT_OK;
}

static int current_context(void **context)
{
	RT_TRY(rt_enter());
	return rt_calls->cuCtxGetCurrent(context);
}

static int add_copy(void **node, void *graph, void *const *dependencies, size_t count, const rt_copy3d *params)
{
	cu_copy3d driver;
	void *context;
	RT_TRY(current_context(&context));
	if (!params)
		return RT_INVALID_VALUE;
	RT_TRY(rt_copy3d_to_driver(params, &driver));
	return rt_calls->cuGraphAddMemcpyNode(node, graph, dependencies, count, &driver, context);
}

static int get_copy(void *node, rt_copy3d *out)
{
	cu_copy3d driver;
	RT_TRY(rt_enter());
	if (!out)
		return RT_INVALID_VALUE;
	RT_TRY(rt_calls->cuGraphMemcpyNodeGetParams(node, &driver));
	return rt_copy3d_from_driver(&driver, out);
}

static int add_fill(void **node, void *graph, void *const *dependencies, size_t count, const rt_memset_node *params)
{
	void *context;
	RT_TRY(current_context(&context));
	return rt_calls->cuGraphAddMemsetNode(node, graph, dependencies, count, params, context);
}

static rt_copy3d linear(void *destination, const void *source, size_t bytes, int kind)
{
	return (rt_copy3d){
		.src_ptr = {(void *)source, bytes, bytes, 1}, .dst_ptr = {destination, bytes, bytes, 1},
		.extent = {bytes, 1, 1}, .kind = kind,
	};
}

RT_API cudaGraphAddKernelNode(
	void **node, void *graph, void *const *dependencies, size_t count, const rt_kernel_node *params)
{
	return rt_done(add_kernel(node, graph, dependencies, count, params));
}

RT_API cudaGraphAddMemcpyNode(
	void **node, void *graph, void *const *dependencies, size_t count, const rt_copy3d *params)
{
	return rt_done(add_copy(node, graph, dependencies, count, params));
}

RT_API cudaGraphAddMemcpyNode1D(void **node, void *graph, void *const *dependencies, size_t count, void *destination,
                                const void *source, size_t bytes, int kind)
{
	const rt_copy3d params = linear(destination, source, bytes, kind);
	return rt_done(add_copy(node, graph, dependencies, count, &params));
}

RT_API cudaGraphAddMemsetNode(
	void **node, void *graph, void *const *dependencies, size_t count, const rt_memset_node *params)
{
	return rt_done(add_fill(node, graph, dependencies, count, params));
}

RT_API cudaGraphKernelNodeGetParams(void *node, rt_kernel_node *out) { return rt_done(get_kernel(node, out)); }
RT_API cudaGraphMemcpyNodeGetParams(void *node, rt_copy3d *out) { return rt_done(get_copy(node, out)); }

static int instantiate(void **exec, void *graph, unsigned long long flags)
{
	RT_TRY(rt_enter());
	return rt_calls->cudaGraphInstantiateWithFlags(exec, graph, flags);
}

#if RT_MAJOR == 11
RT_API cudaGraphInstantiate(void **exec, void *graph, void **error_node, char *log, size_t log_bytes)
{
	if (error_node)
		*error_node = NULL;
	if (log && log_bytes)
		*log = '\0';
	return rt_done(instantiate(exec, graph, 0));
}
#else
RT_API cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags)
{
	return rt_done(instantiate(exec, graph, flags));
}
#endif
