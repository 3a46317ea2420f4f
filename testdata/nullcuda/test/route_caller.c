// Makes one call of the runtime in the named library, so that it looks up its
// driver. Counts how: "dlopen NAME" and "dlsym NAME" on stderr for each.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *dlopen(const char *name, int mode)
{
	static void *(*real)(const char *, int);
	if (!real)
		real = dlvsym(RTLD_NEXT, "dlopen", "GLIBC_2.2.5");
	fprintf(stderr, "dlopen %s %d\n", name ? name : "", mode);
	return real(name, mode);
}

void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);
	if (!real)
		real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	fprintf(stderr, "dlsym %s\n", name);
	return real(handle, name);
}

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void *symbol = library ? dlvsym(library, "cudaMalloc", strrchr(argv[1], '/') + 1) : NULL;
	if (!symbol)
		return 2;
	void *address;
	((int (*)(void **, size_t))symbol)(&address, 64);
	return 0;
}
