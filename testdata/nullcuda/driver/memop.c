// Stream memory operations. A write happens at once; a wait has nothing to wait
// for, since whatever would satisfy it has been done or never will be.
#include "context.h"
#include "range.h"
#include "stream.h"

enum { OP_WAIT_32 = 1, OP_WRITE_32 = 2, OP_FLUSH = 3, OP_WAIT_64 = 4, OP_WRITE_64 = 5, OP_BARRIER = 6 };

// CUstreamBatchMemOpParams: six words, of which these matter.
struct operation {
	uint32_t type;
	cu_ptr address;
	uint64_t value;
	uint32_t flags;
	uint64_t rest[2];
};
_Static_assert(sizeof(struct operation) == 48, "layout of CUstreamBatchMemOpParams");

static cu_result run(void *stream_handle, const struct operation *operation)
{
	struct nc_stream *stream;
	size_t bytes = operation->type == OP_WRITE_32 || operation->type == OP_WAIT_32 ? 4 : 8;
	NC_ENTER();
	NC_TRY(nc_stream_from_handle(stream_handle, &stream));
	if (operation->type == OP_FLUSH || operation->type == OP_BARRIER)
		return CU_OK;
	if (operation->type > OP_BARRIER || operation->address % bytes || !nc_range_covers(operation->address, bytes))
		return CU_INVALID_VALUE;
	if (operation->type == OP_WRITE_32)
		*(uint32_t *)operation->address = (uint32_t)operation->value;
	else if (operation->type == OP_WRITE_64)
		*(uint64_t *)operation->address = operation->value;
	return CU_OK;
}

static cu_result run_one(void *stream, uint32_t type, cu_ptr address, uint64_t value, unsigned flags)
{
	const struct operation operation = {.type = type, .address = address, .value = value, .flags = flags};
	return run(stream, &operation);
}

static cu_result run_batch(void *stream, unsigned count, const struct operation *operations)
{
	enum { BATCH_MAX = 256 };
	if (count > BATCH_MAX || (count && !operations))
		return CU_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		NC_TRY(run(stream, &operations[i]));
	return CU_OK;
}

// Both versions have one ABI; the second no longer needs a driver option.
#define MEMOP(name, type, word)                                                           \
	CU_API name(void *stream, cu_ptr address, word value, unsigned flags)             \
	{                                                                                 \
		return run_one(stream, type, address, value, flags);                      \
	}
MEMOP(cuStreamWriteValue32, OP_WRITE_32, uint32_t)
MEMOP(cuStreamWriteValue32_v2, OP_WRITE_32, uint32_t)
MEMOP(cuStreamWriteValue64, OP_WRITE_64, uint64_t)
MEMOP(cuStreamWriteValue64_v2, OP_WRITE_64, uint64_t)
MEMOP(cuStreamWaitValue32, OP_WAIT_32, uint32_t)
MEMOP(cuStreamWaitValue32_v2, OP_WAIT_32, uint32_t)
MEMOP(cuStreamWaitValue64, OP_WAIT_64, uint64_t)
MEMOP(cuStreamWaitValue64_v2, OP_WAIT_64, uint64_t)

CU_API cuStreamBatchMemOp(void *stream, unsigned count, void *operations, unsigned flags)
{
	return flags ? CU_INVALID_VALUE : run_batch(stream, count, operations);
}

CU_API cuStreamBatchMemOp_v2(void *stream, unsigned count, void *operations, unsigned flags)
{
	return cuStreamBatchMemOp(stream, count, operations, flags);
}
