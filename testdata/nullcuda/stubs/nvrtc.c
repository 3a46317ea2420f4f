#include "stub.h"

// Programs compile to one empty line.
STUB int nvrtcVersion(int *major, int *minor) { *major = STUB_MAJOR; *minor = STUB_MINOR; return 0; }
STUB const char *nvrtcGetErrorString(int error) { return error ? "null NVRTC error" : "null NVRTC success"; }
STUB int nvrtcCreateProgram(void **program) { *program = stub_handle(); return 0; }
STUB int nvrtcDestroyProgram(void **program) { *program = NULL; return 0; }
STUB int nvrtcGetLoweredName(void *program, const char *name, const char **lowered)
{
	(void)program;
	*lowered = name;
	return 0;
}
#define IMAGE(name)                                                                                        \
	STUB int nvrtcGet##name##Size(void *program, size_t *bytes) { (void)program; *bytes = 2; return 0; } \
	STUB int nvrtcGet##name(void *program, char *image) { (void)program; memcpy(image, "\n", 2); return 0; }
IMAGE(PTX)
IMAGE(CUBIN)
IMAGE(LTOIR)
STUB int nvrtcGetProgramLogSize(void *program, size_t *bytes) { (void)program; *bytes = 1; return 0; }
STUB int nvrtcGetProgramLog(void *program, char *log) { (void)program; *log = '\0'; return 0; }
STUB int nvrtcGetNumSupportedArchs(int *count) { *count = 1; return 0; }
STUB int nvrtcGetSupportedArchs(int *archs) { *archs = 90; return 0; }
