// cudaGetDeviceProperties: every field comes from the driver's attributes.
#include "runtime.h"

#include <stddef.h>
#include <string.h>

struct prop_field {
	size_t offset;
	int count; // 0: one size_t, else that many ints
	int attribute;
};

#define RT_PROP_INT(name, count, attribute) {offsetof(PROP, name), count, attribute},
#define RT_PROP_SIZE(name, attribute) {offsetof(PROP, name), 0, attribute},
#define RT_PROP_RAW(type, name, count)

#define PROP rt_device_prop
#define RT_PROP_MAJOR RT_MAJOR
static const struct prop_field prop_fields[] = {
#include "device_prop.def"
};
#undef RT_PROP_MAJOR
#undef PROP

#if RT_MAJOR == 12
#define PROP rt_device_prop_legacy
#define RT_PROP_MAJOR 11
static const struct prop_field legacy_fields[] = {
#include "device_prop.def"
};
#undef RT_PROP_MAJOR
#undef PROP
#endif

static int fill(void *prop, const struct prop_field *fields, size_t count, int device)
{
	for (const struct prop_field *field = fields; field < fields + count; field++) {
		int *ints = (int *)((char *)prop + field->offset);
		for (int i = 0; i < (field->count ? field->count : 1); i++) {
			int value = 0;
			int result = rt_calls->cuDeviceGetAttribute(&value, field->attribute + i, device);
			// An attribute younger than the driver stays 0, as with a real one.
			if (result != RT_OK && result != RT_INVALID_VALUE)
				return result;
			if (field->count)
				ints[i] = value;
			else
				*(size_t *)ints = (size_t)value;
		}
	}
	return RT_OK;
}

#define FILL(prop, fields, device)                                                            \
	do {                                                                                  \
		memset(prop, 0, sizeof *(prop));                                              \
		RT_TRY(fill(prop, fields, sizeof fields / sizeof *fields, device));           \
		RT_TRY(rt_calls->cuDeviceGetName((prop)->name, sizeof (prop)->name, device)); \
		RT_TRY(rt_calls->cuDeviceGetUuid((cu_uuid *)(prop)->uuid, device));           \
		RT_TRY(rt_calls->cuDeviceTotalMem((prop)->totalGlobalMem, device));           \
	} while (0)

static int get(rt_device_prop *prop, int device)
{
	RT_TRY(rt_driver());
	if (!prop)
		return RT_INVALID_VALUE;
	RT_TRY(rt_device_check(device));
	FILL(prop, prop_fields, device);
	return RT_OK;
}

#if RT_MAJOR == 12
static int get_legacy(rt_device_prop_legacy *prop, int device)
{
	RT_TRY(rt_driver());
	if (!prop)
		return RT_INVALID_VALUE;
	RT_TRY(rt_device_check(device));
	FILL(prop, legacy_fields, device);
	return RT_OK;
}

RT_API cudaGetDeviceProperties(rt_device_prop_legacy *prop, int device) { return rt_done(get_legacy(prop, device)); }
RT_API cudaGetDeviceProperties_v2(rt_device_prop *prop, int device) { return rt_done(get(prop, device)); }
#else
RT_API cudaGetDeviceProperties(rt_device_prop *prop, int device) { return rt_done(get(prop, device)); }
#endif
