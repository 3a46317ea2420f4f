#include "stub.h"

// Plans are ints, not pointers.
static int plan;
STUB int cufftCreate(int *out) { *out = ++plan; return 0; }
STUB int cufftPlan1d(int *out) { *out = ++plan; return 0; }
STUB int cufftPlanMany(int *out) { *out = ++plan; return 0; }
STUB int cufftGetVersion(int *version) { *version = STUB_MAJOR * 1000 + STUB_MINOR * 100 + STUB_PATCH; return 0; }
STUB int cufftGetSize(int handle, size_t *bytes) { (void)handle; *bytes = 0; return 0; }
STUB int cufftXtMakePlanMany(int handle, int rank, long long *n, long long *inembed, long long istride, long long idist,
	int itype, long long *onembed, long long ostride, long long odist, int otype, long long batch, size_t *work_bytes,
	int execution)
{
	(void)handle, (void)rank, (void)n, (void)inembed, (void)istride, (void)idist, (void)itype;
	(void)onembed, (void)ostride, (void)odist, (void)otype, (void)batch, (void)execution;
	*work_bytes = 0;
	return 0;
}
