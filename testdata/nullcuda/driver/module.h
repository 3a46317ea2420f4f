// Modules, libraries and their functions. No image is read: a module has every
// function and every variable that it is asked for.
#ifndef NULLCUDA_MODULE_H
#define NULLCUDA_MODULE_H

#include "object.h"

enum { NC_FUNCTION_ATTRIBUTES = 18 };

struct nc_module {
	struct nc_object object; // a module of a context, or a library of the process
	struct nc_function *functions;
	struct nc_variable *variables;
};

struct nc_function {
	struct nc_object object; // NC_FUNCTION of a module, NC_KERNEL of a library
	struct nc_function *next;
	struct nc_module *module;
	char *name;
	int attributes[NC_FUNCTION_ATTRIBUTES];
};

// Unloads a module or library with its functions and variables. nc_lock held,
// as for all functions here.
void nc_module_destroy(void *module);

// Frees what the variables of libraries take in the context, which is about to go; the
// libraries stay.
void nc_library_leave(struct nc_context *context);

// The function that a CUfunction or CUkernel names, or NULL.
struct nc_function *nc_function_find(const void *handle);

// The module's function of that name, made when first asked for. NULL when out
// of host memory.
struct nc_function *nc_module_function(struct nc_module *module, const char *name);

// The module's variable of that name: device memory, charged when first asked
// for.
cu_result nc_module_variable(struct nc_module *module, const char *name, bool managed, cu_ptr *address, size_t *bytes);

#endif
