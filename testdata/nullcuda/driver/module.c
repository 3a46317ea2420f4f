#include "module.h"
#include "context.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The size of every variable: a guess, since images are not read. Large enough
// for the tables that frameworks copy into __constant__ memory.
enum { VARIABLE_BYTES = 64 << 10 };

struct nc_variable {
	struct nc_variable *next;
	struct nc_context *context; // a library has one of each name in every context that asks
	struct nc_range *range;
	char *name;
};

static const int default_attributes[NC_FUNCTION_ATTRIBUTES] = {
	[0] = 1024,      // most threads per block
	[4] = 32,        // registers
	[5] = 90,        // PTX version
	[6] = 90,        // binary version
	[8] = 48 << 10,  // most dynamic shared memory
	[9] = -1,        // shared memory carve-out: the driver's choice
};

struct nc_function *nc_function_find(const void *handle)
{
	struct nc_function *function = nc_object_find(handle, NC_FUNCTION);
	return function ? function : nc_object_find(handle, NC_KERNEL);
}

struct nc_function *nc_module_function(struct nc_module *module, const char *name)
{
	for (struct nc_function *function = module->functions; function; function = function->next)
		if (strcmp(function->name, name) == 0)
			return function;
	enum nc_object_type type = module->object.type == NC_LIBRARY ? NC_KERNEL : NC_FUNCTION;
	char *copy = strdup(name);
	struct nc_function *function = copy ? nc_object_new(type, sizeof *function, NULL) : NULL;
	if (!function) {
		free(copy);
		return NULL;
	}
	function->name = copy;
	function->module = module;
	memcpy(function->attributes, default_attributes, sizeof default_attributes);
	function->next = module->functions;
	module->functions = function;
	return function;
}

cu_result nc_module_variable(struct nc_module *module, const char *name, bool managed, cu_ptr *address, size_t *bytes)
{
	struct nc_context *context = module->object.owner; // NULL for a library
	if (!context)
		NC_TRY(nc_context_current(&context));
	struct nc_variable *variable = module->variables;
	while (variable && (variable->context != context || strcmp(variable->name, name)))
		variable = variable->next;
	if (!variable) {
		variable = calloc(1, sizeof *variable);
		char *copy = strdup(name);
		cu_result result = CU_OUT_OF_MEMORY;
		if (variable && copy)
			result = nc_memory_new(context, managed ? NC_MANAGED : NC_MODULE, VARIABLE_BYTES, &variable->range);
		if (result != CU_OK) {
			free(copy);
			free(variable);
			return result;
		}
		variable->range->owner = NULL; // freed with the module, not by the context's sweep
		variable->name = copy;
		variable->context = context;
		variable->next = module->variables;
		module->variables = variable;
	}
	if (address)
		*address = variable->range->base;
	if (bytes)
		*bytes = variable->range->requested;
	return CU_OK;
}

// Frees the variable that the link names and moves the link on.
static void variable_end(struct nc_variable **link)
{
	struct nc_variable *variable = *link;
	*link = variable->next;
	nc_memory_release(variable->range);
	free(variable->name);
	free(variable);
}

void nc_module_destroy(void *object)
{
	struct nc_module *module = object;
	for (struct nc_function *function = module->functions, *next; function; function = next) {
		next = function->next;
		free(function->name);
		nc_object_delete(function);
	}
	while (module->variables)
		variable_end(&module->variables);
	nc_object_delete(module);
}

static void end_variables_of(void *object, void *context)
{
	struct nc_module *library = object;
	for (struct nc_variable **link = &library->variables; *link;)
		if ((*link)->context == context)
			variable_end(link);
		else
			link = &(*link)->next;
}

void nc_library_leave(struct nc_context *context) { nc_object_each(NC_LIBRARY, end_variables_of, context); }

CU_API cuModuleLoadData(void **handle, const void *image)
{
	NC_CURRENT(context);
	if (!handle || !image)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	*handle = nc_object_new(NC_MODULE_OBJECT, sizeof(struct nc_module), context);
	return *handle ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuModuleLoadDataEx(void **handle, const void *image, unsigned count, int *options, void **values)
{
	NC_TRY(nc_init_check());
	if (count && (!options || !values))
		return CU_INVALID_VALUE;
	return cuModuleLoadData(handle, image);
}

CU_API cuModuleLoadFatBinary(void **handle, const void *image) { return cuModuleLoadData(handle, image); }

CU_API cuModuleLoad(void **handle, const char *path)
{
	NC_TRY(nc_init_check());
	if (!path)
		return CU_INVALID_VALUE;
	if (access(path, R_OK) < 0)
		return CU_FILE_NOT_FOUND;
	return cuModuleLoadData(handle, path);
}

CU_API cuModuleUnload(void *handle)
{
	NC_ENTER();
	struct nc_module *module = nc_object_find(handle, NC_MODULE_OBJECT);
	if (!module)
		return CU_INVALID_HANDLE;
	nc_module_destroy(module);
	return CU_OK;
}

CU_API cuModuleGetLoadingMode(int *mode)
{
	enum { LAZY = 2 };
	NC_TRY(nc_init_check());
	if (!mode)
		return CU_INVALID_VALUE;
	*mode = LAZY;
	return CU_OK;
}

CU_API cuModuleGetFunction(void **out, void *handle, const char *name)
{
	NC_TRY(nc_init_check());
	if (!out || !name)
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_module *module = nc_object_find(handle, NC_MODULE_OBJECT);
	if (!module)
		return CU_INVALID_HANDLE;
	*out = nc_module_function(module, name);
	return *out ? CU_OK : CU_OUT_OF_MEMORY;
}

CU_API cuModuleGetGlobal_v2(cu_ptr *address, size_t *bytes, void *handle, const char *name)
{
	NC_TRY(nc_init_check());
	if (!name || (!address && !bytes))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	struct nc_module *module = nc_object_find(handle, NC_MODULE_OBJECT);
	if (!module)
		return CU_INVALID_HANDLE;
	return nc_module_variable(module, name, false, address, bytes);
}

// Linking gives an image as opaque as those that were put in.
struct link {
	struct nc_object object;
	char image[64];
};

CU_API cuLinkCreate_v2(unsigned count, int *options, void **values, void **state)
{
	NC_CURRENT(context);
	if (!state || (count && (!options || !values)))
		return CU_INVALID_VALUE;
	NC_LOCKED();
	*state = nc_object_new(NC_LINK, sizeof(struct link), NULL);
	return *state ? CU_OK : CU_OUT_OF_MEMORY;
}

static cu_result link_check(void *state)
{
	NC_ENTER();
	return nc_object_find(state, NC_LINK) ? CU_OK : CU_INVALID_HANDLE;
}

CU_API cuLinkAddData_v2(
	void *state, int type, void *data, size_t bytes, const char *name, unsigned count, int *options, void **values)
{
	(void)type, (void)name, (void)count, (void)options, (void)values;
	NC_TRY(link_check(state));
	return data && bytes ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuLinkAddFile_v2(void *state, int type, const char *path, unsigned count, int *options, void **values)
{
	(void)type, (void)count, (void)options, (void)values;
	NC_TRY(link_check(state));
	if (!path)
		return CU_INVALID_VALUE;
	return access(path, R_OK) < 0 ? CU_FILE_NOT_FOUND : CU_OK;
}

CU_API cuLinkComplete(void *state, void **image, size_t *bytes)
{
	NC_TRY(link_check(state));
	if (!image)
		return CU_INVALID_VALUE;
	*image = ((struct link *)state)->image; // lives as long as the link state
	if (bytes)
		*bytes = sizeof ((struct link *)state)->image;
	return CU_OK;
}

CU_API cuLinkDestroy(void *state)
{
	NC_TRY(link_check(state));
	NC_LOCKED();
	nc_object_delete(state);
	return CU_OK;
}
