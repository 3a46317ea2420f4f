// cudaDeviceProp as this runtime's callers know it and, in 12, also the older
// layout behind the unversioned cudaGetDeviceProperties symbol.
#ifndef NULLCUDART_DEVICE_PROP_H
#define NULLCUDART_DEVICE_PROP_H

#define RT_PROP_INT(name, count, attribute) int name[count];
#define RT_PROP_SIZE(name, attribute) size_t name;
#define RT_PROP_RAW(type, name, count) type name[count];

typedef struct {
#define RT_PROP_MAJOR RT_MAJOR
#include "device_prop.def"
#undef RT_PROP_MAJOR
} rt_device_prop;

#if RT_MAJOR == 12
typedef struct {
#define RT_PROP_MAJOR 11
#include "device_prop.def"
#undef RT_PROP_MAJOR
} rt_device_prop_legacy;
#endif

#undef RT_PROP_INT
#undef RT_PROP_SIZE
#undef RT_PROP_RAW

#endif
