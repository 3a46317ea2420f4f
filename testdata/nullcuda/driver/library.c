// Libraries: modules of the process rather than of a context.
#include "context.h"
#include "module.h"

#include <unistd.h>

CU_API cuLibraryLoadData(void **handle, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                         int *options, void **values, unsigned count)
{
	NC_TRY(nc_init_check());
	if (!handle || !code || (jit_count && (!jit_options || !jit_values)) || (count && !options))
		return CU_INVALID_VALUE;
	(void)values;
	NC_LOCKED();
	*handle = nc_object_new(NC_LIBRARY, sizeof(struct nc_module), NULL);
	return *handle ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuLibraryLoadFromFile(void **handle, const char *path, int *jit_options, void **jit_values, unsigned jit_count,
                             int *options, void **values, unsigned count)
{
	NC_TRY(nc_init_check());
	if (!path)
		return CU_INVALID_VALUE;
	if (access(path, R_OK) < 0)
		return CU_FILE_NOT_FOUND;
	return cuLibraryLoadData(handle, path, jit_options, jit_values, jit_count, options, values, count);
}

CU_API cuLibraryUnload(void *handle)
{
	NC_ENTER();
	struct nc_module *library = nc_object_find(handle, NC_LIBRARY);
	if (!library)
		return CU_INVALID_HANDLE;
	nc_module_destroy(library);
	return CU_OK;
}

CU_API cuLibraryGetKernel(void **kernel, void *handle, const char *name)
{
	NC_TRY(nc_init_check());
	if (!kernel || !name)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_module *library = nc_object_find(handle, NC_LIBRARY);
	if (!library)
		return CU_INVALID_HANDLE;
	*kernel = nc_module_function(library, name);
	return *kernel ? CU_OK : CU_OUT_OF_MEMORY;
}

// The library as a module of the current context.
CU_API cuLibraryGetModule(void **module, void *handle)
{
	NC_CURRENT(context);
	if (!module)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	if (!nc_object_find(handle, NC_LIBRARY))
		return CU_INVALID_HANDLE;
	*module = nc_object_new(NC_MODULE_OBJECT, sizeof(struct nc_module), context);
	return *module ? CU_OK : CU_OUT_OF_MEMORY;
}

static cu_result variable(cu_ptr *address, size_t *bytes, void *handle, const char *name, bool managed)
{
	NC_TRY(nc_init_check());
	if (!name || (!address && !bytes))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_module *library = nc_object_find(handle, NC_LIBRARY);
	if (!library)
		return CU_INVALID_HANDLE;
	return nc_module_variable(library, name, managed, address, bytes);
}

CU_API cuLibraryGetGlobal(cu_ptr *address, size_t *bytes, void *handle, const char *name)
{
	return variable(address, bytes, handle, name, false);
}

CU_API cuLibraryGetManaged(cu_ptr *address, size_t *bytes, void *handle, const char *name)
{
	return variable(address, bytes, handle, name, true);
}

static cu_result find(void *handle, struct nc_function **function)
{
	NC_ENTER();
	*function = nc_function_find(handle);
	return *function ? CU_OK : CU_INVALID_HANDLE;
}

// A kernel serves as the function of every context.
CU_API cuKernelGetFunction(void **out, void *kernel)
{
	struct nc_function *function;
	NC_CURRENT(context);
	NC_TRY(find(kernel, &function));
	if (!out)
		return CU_INVALID_VALUE;
	*out = function;
	return CU_OK;
}

CU_API cuKernelGetLibrary(void **library, void *kernel)
{
	struct nc_function *function;
	NC_TRY(find(kernel, &function));
	if (!library)
		return CU_INVALID_VALUE;
	*library = function->module;
	return CU_OK;
}

CU_API cuKernelGetName(const char **name, void *kernel)
{
	struct nc_function *function;
	NC_TRY(find(kernel, &function));
	if (!name)
		return CU_INVALID_VALUE;
	*name = function->name;
	return CU_OK;
}

CU_API cuKernelGetAttribute(int *value, int attribute, void *kernel, cu_device device)
{
	struct nc_function *function;
	NC_TRY(find(kernel, &function));
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	if (!value || attribute < 0 || attribute >= NC_FUNCTION_ATTRIBUTES)
		return CU_INVALID_VALUE;
	*value = function->attributes[attribute];
	return CU_OK;
}

CU_API cuKernelSetAttribute(int attribute, int value, void *kernel, cu_device device)
{
	struct nc_function *function;
	NC_TRY(find(kernel, &function));
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	if (attribute < 0 || attribute >= NC_FUNCTION_ATTRIBUTES)
		return CU_INVALID_VALUE;
	function->attributes[attribute] = value;
	return CU_OK;
}

CU_API cuKernelSetCacheConfig(void *kernel, int config, cu_device device)
{
	struct nc_function *function;
	NC_TRY(find(kernel, &function));
	if (!nc_device_valid(device))
		return CU_INVALID_DEVICE;
	return config < 0 || config > 3 ? CU_INVALID_VALUE : CU_OK;
}
