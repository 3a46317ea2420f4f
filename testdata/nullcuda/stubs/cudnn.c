#include "stub.h"

#include <stdbool.h>
#include <stdlib.h>

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
// One engine for every graph, whose plan needs no workspace. Numbers as in NVIDIA's cudnn_graph.h (9).
enum { HEURISTIC_RESULTS = 202, PLAN_WORKSPACE = 402, ENGINE_INDEX = 1301 };
STUB int cudnnBackendGetAttribute(
	void *descriptor, int name, int type, long long requested, long long *count, void *elements)
{
	(void)descriptor, (void)type;
	bool number = name == PLAN_WORKSPACE || name == ENGINE_INDEX;
	if (count)
		*count = number || name == HEURISTIC_RESULTS;
	if (number && elements && requested > 0)
		memset(elements, 0, sizeof(int64_t));
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

// Shapes of tensors are remembered, since those of a recurrent network's weights are read back.
enum { DIMENSIONS = 8 };
struct shape {
	int type, dimensions, sizes[DIMENSIONS], strides[DIMENSIONS];
};
static int make(void **made, size_t bytes)
{
	*made = calloc(1, bytes);
	return *made ? 0 : 1;
}
STUB int cudnnCreateTensorDescriptor(void **made) { return make(made, sizeof(struct shape)); }
STUB int cudnnDestroyTensorDescriptor(void *shape) { free(shape); return 0; }
static void set(struct shape *s, int type, int dimensions, const int *sizes)
{
	s->type = type;
	s->dimensions = dimensions > DIMENSIONS ? DIMENSIONS : dimensions;
	for (int i = s->dimensions - 1, stride = 1; i >= 0; stride *= sizes[i--]) {
		s->sizes[i] = sizes[i];
		s->strides[i] = stride;
	}
}
STUB int cudnnSetTensorNdDescriptor(struct shape *s, int type, int dimensions, const int *sizes, const int *strides)
{
	set(s, type, dimensions, sizes);
	memcpy(s->strides, strides, s->dimensions * sizeof *strides);
	return 0;
}
STUB int cudnnGetTensorNdDescriptor(
	const struct shape *s, int requested, int *type, int *dimensions, int *sizes, int *strides)
{
	int n = requested < s->dimensions ? requested : s->dimensions;
	*type = s->type;
	*dimensions = s->dimensions;
	memcpy(sizes, s->sizes, n * sizeof *sizes);
	memcpy(strides, s->strides, n * sizeof *strides);
	return 0;
}

// A recurrent network: matrices of one pseudo layer after the other, then the biases in the same order.
struct network {
	int cell, bias, directions, type, input, hidden, projection, layers;
};
STUB int cudnnCreateRNNDescriptor(void **made) { return make(made, sizeof(struct network)); }
STUB int cudnnDestroyRNNDescriptor(void *network) { free(network); return 0; }
STUB int cudnnSetRNNDescriptor_v8(
	struct network *n, int algorithm, int cell, int bias, int direction, int input_mode, int type, int precision,
	int math, int input, int hidden, int projection, int layers, void *dropout, unsigned flags)
{
	(void)algorithm, (void)input_mode, (void)precision, (void)math, (void)dropout, (void)flags;
	*n = (struct network){cell, bias, direction + 1, type, input, hidden, projection, layers};
	return 0;
}
enum { LSTM = 2, GRU = 3, DOUBLE = 1, HALF = 2, BFLOAT16 = 9 };
static size_t element(const struct network *n)
{
	return n->type == DOUBLE ? 8 : n->type == HALF || n->type == BFLOAT16 ? 2 : 4;
}
static int gates(const struct network *n) { return n->cell == LSTM ? 4 : n->cell == GRU ? 3 : 1; }
static bool projects(const struct network *n) { return n->projection > 0 && n->projection != n->hidden; }
static int matrices(const struct network *n) { return 2 * gates(n) + projects(n); }
static void matrix(const struct network *n, int layer, int index, int sizes[3])
{
	int output = projects(n) ? n->projection : n->hidden;
	sizes[0] = 1;
	sizes[1] = index < 2 * gates(n) ? n->hidden : output;
	sizes[2] = index >= 2 * gates(n) ? n->hidden : index >= gates(n) ? output :
		layer < n->directions ? n->input : output * n->directions;
}
// Elements of the matrices before this one: behind the last layer, of all.
static size_t before(const struct network *n, int layer, int index)
{
	size_t sum = 0;
	for (int l = 0; l <= layer; l++)
		for (int i = 0; i < (l < layer ? matrices(n) : index); i++) {
			int sizes[3];
			matrix(n, l, i, sizes);
			sum += (size_t)sizes[1] * sizes[2];
		}
	return sum;
}
// Biases: none, of the input's or the state's matrices, or of both (0 to 3 with both as 2).
static bool biased(const struct network *n, int index)
{
	return index < 2 * gates(n) && (n->bias == 2 || n->bias == (index < gates(n) ? 1 : 3));
}
static int biases(const struct network *n) { return n->bias == 0 ? 0 : n->bias == 2 ? 2 * gates(n) : gates(n); }
STUB int cudnnGetRNNWeightSpaceSize(void *handle, const struct network *n, size_t *bytes)
{
	(void)handle;
	int layers = n->layers * n->directions;
	*bytes = (before(n, layers, 0) + (size_t)layers * biases(n) * n->hidden) * element(n);
	return 0;
}
STUB int cudnnGetRNNWeightParams(
	void *handle, const struct network *n, int layer, size_t bytes, char *weights, int index,
	struct shape *matrix_shape, void **matrix_at, struct shape *bias_shape, void **bias_at)
{
	(void)handle, (void)bytes;
	int layers = n->layers * n->directions, sizes[3], bias[3] = {1, n->hidden, 1};
	if (matrix_shape && matrix_at) { // the program asks for either, or both
		bool there = index < matrices(n);
		matrix(n, layer, index, sizes);
		set(matrix_shape, n->type, there ? 3 : 0, sizes);
		*matrix_at = there ? weights + before(n, layer, index) * element(n) : NULL;
	}
	if (bias_shape && bias_at) {
		bool there = biased(n, index);
		size_t done = (size_t)layer * biases(n) + (n->bias == 3 ? index - gates(n) : index);
		set(bias_shape, n->type, there ? 3 : 0, bias);
		*bias_at = there ? weights + (before(n, layers, 0) + done * n->hidden) * element(n) : NULL;
	}
	return 0;
}
