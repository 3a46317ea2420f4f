// What the hand-written behaviours of stub libraries share. A function here has
// the ABI that callers expect; what nobody reads is left out of its parameters.
#ifndef NULLCUDA_STUB_H
#define NULLCUDA_STUB_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Dotted version numbers of the library that is stood in for, from stubs.py.
#ifndef STUB_MAJOR
#define STUB_MAJOR 0
#define STUB_MINOR 0
#define STUB_PATCH 0
#endif

#define STUB __attribute__((visibility("default")))

// A handle that is not null and never read.
static inline void *stub_handle(void)
{
	static char handle[64];
	return handle;
}

#endif
