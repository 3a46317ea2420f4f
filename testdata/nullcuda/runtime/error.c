// The last error of each thread, and what errors are called.
#include "runtime.h"

static __thread int last_error;

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
#define RT_ERROR(code, name, text) {code, #name, text},
#include "error.def"
#undef RT_ERROR
};

// Errors that leave the context unusable: asking for them does not clear them.
static bool is_sticky(int error)
{
	switch (error) {
	case 214: // uncorrectable ECC
	case 220: // NVLink
	case 700: // illegal address
	case 702: // launch timeout
	case 710: // assert
	case 714: // hardware stack
	case 715: // illegal instruction
	case 716: // misaligned address
	case 717: // address space
	case 718: // program counter
	case 719: // launch failure
		return true;
	}
	return false;
}

int rt_done(int error)
{
	if (error != RT_OK)
		last_error = error;
	return error;
}

RT_API cudaGetLastError(void)
{
	int error = last_error;
	if (!is_sticky(error))
		last_error = RT_OK;
	return error;
}

RT_API cudaPeekAtLastError(void) { return last_error; }

RT_EXPORT const char *cudaGetErrorName(int error)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == error)
			return errors[i].name;
	return "unrecognized error code";
}

RT_EXPORT const char *cudaGetErrorString(int error)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == error)
			return errors[i].text;
	return "unrecognized error code";
}
