#include "stub.h"

// One rank, whose collectives are done at once.
STUB int ncclGetVersion(int *version) { *version = STUB_MAJOR * 10000 + STUB_MINOR * 100 + STUB_PATCH; return 0; }
STUB const char *ncclGetErrorString(int error) { return error ? "null NCCL error" : "null NCCL success"; }
STUB const char *ncclGetLastError(void *comm) { (void)comm; return ""; }
STUB int ncclGetUniqueId(char *id) { memset(id, 0, 128); return 0; }
STUB int ncclCommInitRank(void **comm) { *comm = stub_handle(); return 0; }
STUB int ncclCommInitRankConfig(void **comm) { *comm = stub_handle(); return 0; }
STUB int ncclCommInitRankScalable(void **comm) { *comm = stub_handle(); return 0; }
STUB int ncclCommInitAll(void **comms, int count)
{
	for (int i = 0; i < count; i++)
		comms[i] = stub_handle();
	return 0;
}
STUB int ncclCommSplit(void *comm, int color, int key, void **out)
{
	(void)comm, (void)color, (void)key;
	*out = stub_handle();
	return 0;
}
STUB int ncclCommCount(void *comm, int *count) { (void)comm; *count = 1; return 0; }
STUB int ncclCommUserRank(void *comm, int *rank) { (void)comm; *rank = 0; return 0; }
STUB int ncclCommGetAsyncError(void *comm, int *error) { (void)comm; *error = 0; return 0; }
// Memory is not NCCL's to invent: unhandled system error.
STUB int ncclMemAlloc(void **address) { *address = NULL; return 2; }
