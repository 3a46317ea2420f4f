// Addresses and sizes of registered variables.
#include "registry.h"
#include "runtime.h"

static int find(const void *symbol, struct rt_variable *variable)
{
	RT_TRY(rt_enter());
	return rt_variable_find(symbol, variable);
}

RT_API cudaGetSymbolAddress(void **address, const void *symbol)
{
	struct rt_variable variable;
	int error = address ? find(symbol, &variable) : RT_INVALID_VALUE;
	if (error == RT_OK)
		*address = variable.address;
	return rt_done(error);
}

RT_API cudaGetSymbolSize(size_t *size, const void *symbol)
{
	struct rt_variable variable;
	int error = size ? find(symbol, &variable) : RT_INVALID_VALUE;
	if (error == RT_OK)
		*size = variable.size;
	return rt_done(error);
}
