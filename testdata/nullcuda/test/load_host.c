// Loads a test library the way an extension module is loaded, checks that the
// static runtime inside it is not to be seen from outside, and runs it.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "load_host: %s\n", argc == 2 ? dlerror() : "usage: load_host LIBRARY");
		return 2;
	}
	if (dlsym(library, "cudaMalloc") || dlsym(library, "__cudaRegisterFatBinary")) {
		fprintf(stderr, "load_host: %s exports the runtime\n", argv[1]);
		return 1;
	}
	int (*test)(void) = (int (*)(void))dlsym(library, "test_main");
	if (!test) {
		fprintf(stderr, "load_host: %s\n", dlerror());
		return 2;
	}
	return test();
}
