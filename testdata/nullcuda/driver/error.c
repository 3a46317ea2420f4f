#include "driver.h"

struct error {
	int code;
	const char *name, *text;
};

// In the order of the codes.
static const struct error errors[] = {
	{0, "CUDA_SUCCESS", "no error"},
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
	{5, "CUDA_ERROR_PROFILER_DISABLED", "profiler disabled"},
	{34, "CUDA_ERROR_STUB_LIBRARY", "stub library in use"},
	{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device busy or unavailable"},
	{100, "CUDA_ERROR_NO_DEVICE", "no device found"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{200, "CUDA_ERROR_INVALID_IMAGE", "invalid kernel image"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{205, "CUDA_ERROR_MAP_FAILED", "mapping failed"},
	{206, "CUDA_ERROR_UNMAP_FAILED", "unmapping failed"},
	{207, "CUDA_ERROR_ARRAY_IS_MAPPED", "array is mapped"},
	{208, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped"},
	{209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for this device"},
	{211, "CUDA_ERROR_NOT_MAPPED", "resource not mapped"},
	{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error"},
	{215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "limit not supported"},
	{217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access not supported between these devices"},
	{218, "CUDA_ERROR_INVALID_PTX", "PTX compilation failed"},
	{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "PTX of an unsupported toolchain"},
	{300, "CUDA_ERROR_INVALID_SOURCE", "invalid kernel source"},
	{301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	{302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "symbol of shared object not found"},
	{303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "initialisation of shared object failed"},
	{304, "CUDA_ERROR_OPERATING_SYSTEM", "operating system call failed"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{401, "CUDA_ERROR_ILLEGAL_STATE", "not permitted in this state"},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{600, "CUDA_ERROR_NOT_READY", "device not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access"},
	{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	{702, "CUDA_ERROR_LAUNCH_TIMEOUT", "launch timed out"},
	{704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access already enabled"},
	{705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access not enabled"},
	{708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "primary context is active"},
	{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	{710, "CUDA_ERROR_ASSERT", "device-side assertion failed"},
	{711, "CUDA_ERROR_TOO_MANY_PEERS", "too many peers"},
	{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory already registered"},
	{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory not registered"},
	{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	{718, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "launch failed"},
	{720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
	{800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not initialised"},
	{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "display and compute drivers do not match"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted while a stream captures"},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "stream capture invalidated by an earlier error"},
	{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would merge two captures"},
	{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not begun in this stream"},
	{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "captured work not joined to the origin stream"},
	{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency on work outside the capture"},
	{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "disallowed implicit dependency on the legacy stream"},
	{907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on a captured event"},
	{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture was begun by another thread"},
	{909, "CUDA_ERROR_TIMEOUT", "timeout"},
	{910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "graph update violates its constraints"},
	{912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
	{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const struct error *find(int code)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code)
			return &errors[i];
	return NULL;
}

// Both work before cuInit, as a program reports a failed cuInit with them.
CU_API cuGetErrorName(int code, const char **name)
{
	const struct error *error = find(code);
	if (!name)
		return CU_INVALID_VALUE;
	*name = error ? error->name : NULL;
	return error ? CU_OK : CU_INVALID_VALUE;
}

CU_API cuGetErrorString(int code, const char **text)
{
	const struct error *error = find(code);
	if (!text)
		return CU_INVALID_VALUE;
	*text = error ? error->text : NULL;
	return error ? CU_OK : CU_INVALID_VALUE;
}
