// Everything that a null GPU has no answer for: sensors, clocks, links, virtual
// GPUs. Named one by one, because callers bind lazily and a missing name would
// end the program.
#include "nvml.h"

#define UNSUPPORTED(name) \
	NVML_API name(void) { NVML_TRY(nvml_check()); return NVML_NOT_SUPPORTED; }
#include "unsupported.def"
