// Uses a driver that lies where the program says: by its RPATH, and by the whole path in argv[1]. Prints for each what
// it is: the vendor's, which this file is when compiled with -DVENDOR, or another.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef VENDOR
int cuInit(unsigned flags) { (void)flags; return 999; }
int cuDeviceGetCount(int *count) { *count = 77; return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 0; return 0; }
#else
int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDeviceTotalMem_v2(size_t *bytes, int device);

static int devices(int (*init)(unsigned), int (*number)(int *))
{
	int count = 0;
	return init(0) || number(&count) ? -1 : count;
}

int main(int argc, char **argv)
{
	void *opened = dlopen(argv[1], RTLD_NOW);
	if (!opened) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	size_t bytes = 0;
	int linked = devices(cuInit, cuDeviceGetCount);
	cuDeviceTotalMem_v2(&bytes, 0);
	int by_path =
		devices((int (*)(unsigned))dlsym(opened, "cuInit"), (int (*)(int *))dlsym(opened, "cuDeviceGetCount"));
	printf("%s: %d and %d devices of %zu bytes\n", argc > 2 ? "child" : "parent", linked, by_path, bytes);
	fflush(stdout);
	if (argc == 2 && fork() == 0)
		return execl("/proc/self/exe", argv[0], argv[1], "child", (char *)NULL);
	wait(NULL);
	return 0;
}
#endif
