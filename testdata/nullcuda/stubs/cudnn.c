#include "stub.h"

STUB size_t cudnnGetVersion(void)
{
	size_t major = STUB_MAJOR >= 9 ? 10000 : 1000;
	return STUB_MAJOR * major + STUB_MINOR * 100 + STUB_PATCH;
}
STUB size_t cudnnGetCudartVersion(void) { return STUB_MAJOR >= 9 ? 12060 : 11020; }
STUB int cudnnGetProperty(int which, int *value)
{
	*value = which == 0 ? STUB_MAJOR : which == 1 ? STUB_MINOR : STUB_PATCH;
	return 0;
}
STUB const char *cudnnGetErrorString(int status) { return status ? "null cuDNN error" : "null cuDNN success"; }
STUB void cudnnGetLastErrorString(char *text, size_t size) { if (size) *text = '\0'; }
STUB int cudnnBackendCreateDescriptor(int type, void **descriptor)
{
	(void)type;
	*descriptor = stub_handle();
	return 0;
}
// No engine, no plan: the frontend says so instead of trusting a count never set.
STUB int cudnnBackendGetAttribute(
	void *descriptor, int name, int type, long long requested, long long *count, void *elements)
{
	(void)descriptor, (void)name, (void)type, (void)requested, (void)elements;
	if (count)
		*count = 0;
	return 0;
}
STUB int cudnnGetStream(void *handle, void **stream) { (void)handle; *stream = NULL; return 0; }
STUB int cudnnDropoutGetStatesSize(void *handle, size_t *bytes) { (void)handle; *bytes = 1024; return 0; }
STUB int cudnnDropoutGetReserveSpaceSize(void *descriptor, size_t *bytes) { (void)descriptor; *bytes = 1024; return 0; }

// One algorithm that needs no workspace: the sizes of the older convolution API.
struct performance {
	int algorithm, status;
	float time;
	size_t memory;
	int determinism, math_type, reserved[3];
};
static int one(int requested, int *returned, struct performance *results)
{
	*returned = requested > 0;
	if (requested > 0)
		memset(results, 0, sizeof *results);
	return 0;
}
#define FIND(name) \
	STUB int name( \
		void *h, void *x, void *w, void *c, void *y, int requested, int *returned, struct performance *results) \
	{ \
		(void)h, (void)x, (void)w, (void)c, (void)y; \
		return one(requested, returned, results); \
	}
FIND(cudnnGetConvolutionForwardAlgorithm_v7)
FIND(cudnnGetConvolutionBackwardDataAlgorithm_v7)
FIND(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
FIND(cudnnFindConvolutionForwardAlgorithm)
FIND(cudnnFindConvolutionBackwardDataAlgorithm)
FIND(cudnnFindConvolutionBackwardFilterAlgorithm)
#define COUNT(name) STUB int name(void *handle, int *count) { (void)handle; *count = 1; return 0; }
COUNT(cudnnGetConvolutionForwardAlgorithmMaxCount)
COUNT(cudnnGetConvolutionBackwardDataAlgorithmMaxCount)
COUNT(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount)
#define WORKSPACE(name)                                                                           \
	STUB int name(void *h, void *a, void *b, void *c, void *d, int algorithm, size_t *bytes)  \
	{                                                                                         \
		(void)h, (void)a, (void)b, (void)c, (void)d, (void)algorithm;                     \
		*bytes = 0;                                                                       \
		return 0;                                                                         \
	}
WORKSPACE(cudnnGetConvolutionForwardWorkspaceSize)
WORKSPACE(cudnnGetConvolutionBackwardDataWorkspaceSize)
WORKSPACE(cudnnGetConvolutionBackwardFilterWorkspaceSize)
