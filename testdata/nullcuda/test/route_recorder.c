// A libcuda that only writes down what a runtime asks it for, one line per
// request on stderr: how abi_runtime.py compares our runtime with the vendor's.
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int anything(void) { return 0; }
static int no_table(void) { return 500; }

EXPORT int cuDriverGetVersion(int *out)
{
	*out = 13020;
	return 0;
}

static int count(int *out)
{
	*out = 1;
	return 0;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int wanted, unsigned long long flags, int *status);

static int get(const char *name, void **function, int wanted, unsigned long long flags)
{
	return cuGetProcAddress_v2(name, function, wanted, flags, NULL);
}

EXPORT int cuGetProcAddress(const char *name, void **function, int wanted, unsigned long long flags)
{
	return get(name, function, wanted, flags);
}

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int wanted, unsigned long long flags, int *status)
{
	if (name && *name)
		fprintf(stderr, "request %s %d %llu\n", name, wanted, flags);
	if (status)
		*status = 0;
	*function = (void *)anything;
	if (name && !strcmp(name, "cuDriverGetVersion"))
		*function = (void *)cuDriverGetVersion;
	if (name && !strcmp(name, "cuDeviceGetCount"))
		*function = (void *)count;
	if (name && !strcmp(name, "cuGetExportTable"))
		*function = (void *)no_table;
	if (name && !strcmp(name, "cuGetProcAddress"))
		*function = wanted >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)get;
	return 0;
}
