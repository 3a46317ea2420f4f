// What every file of the null runtime shares.
//
// Design
// A runtime call is: bring up the driver and this thread's context, translate
// the arguments, call the driver, remember the error. The driver does the work
// and the accounting; the runtime owns only the current device, the last error,
// and the tables of registered kernels and variables.
//
// Files that serve calls with a per-thread twin (`_ptsz`, `_ptds`) are compiled
// twice. RT_THREAD_STREAM picks the names and which of the driver's two sets of
// functions is called, so the twins cannot differ in anything else.
//
// Invariants
// 1. The driver is reached by one dlopen, one dlsym (in 13 one more, for the
//    version) and the pointer that dlsym gave, asking for the versions that the
//    vendor's runtime asks for. Otherwise a tool that watches that route would be
//    tested on a lie. test/abi_runtime.py compares the two.
// 2. A function's out-parameters are written only on success.
// 3. No lock is held while the driver is called, except the one that creates
//    primary contexts.
#ifndef NULLCUDART_RUNTIME_H
#define NULLCUDART_RUNTIME_H

#include "abi.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef RT_STATIC
#define RT_EXPORT __attribute__((visibility("hidden")))
#else
#define RT_EXPORT __attribute__((visibility("default")))
#endif
#define RT_API RT_EXPORT int

#ifdef RT_THREAD_STREAM
#define RT_PTSZ(name) name##_ptsz
#define RT_PTDS(name) name##_ptds
#define rt_calls (&rt_call_sets[1])
#else
#define RT_PTSZ(name) name
#define RT_PTDS(name) name
#define rt_calls (&rt_call_sets[0])
#endif

#define RT_TRY(expression)                 \
	do {                               \
		int try_ = (expression);   \
		if (try_ != RT_OK)         \
			return try_;       \
	} while (0)

// The driver functions of calls.def and forward.def: set 0 for the legacy
// default stream, set 1 for the per-thread one. A function that the driver does
// not have answers RT_NOT_SUPPORTED.
struct rt_call_set {
#define RT_CALL(name, driver, version, parameters) int (*name) parameters;
#define RT_CALL_TWIN(name, driver, version, thread_version, parameters) int (*name) parameters;
#define RT_FORWARD(name, driver, version, parameters, arguments) int (*name) parameters;
#define RT_FORWARD_INIT RT_FORWARD
#define RT_FORWARD_TWIN(name, driver, version, thread_version, parameters, arguments) int (*name) parameters;
#include "calls.def"
#include "forward.def"
#undef RT_CALL
#undef RT_CALL_TWIN
#undef RT_FORWARD
#undef RT_FORWARD_INIT
#undef RT_FORWARD_TWIN
};
extern struct rt_call_set rt_call_sets[2];

// The driver has this function (they are never NULL).
bool rt_call_known(const void *function);

// Brings up the driver; RT_INSUFFICIENT_DRIVER if there is none new enough.
int rt_driver(void);

// Brings up the driver and makes sure that this thread has a current context,
// creating the primary one of the thread's device at need.
int rt_enter(void);

// Records the error, if it is one, as the thread's last and returns it.
int rt_done(int error);

// RT_INVALID_DEVICE unless device is an ordinal of this machine.
int rt_device_check(int device);

// The primary context of a device, retained once for the process.
int rt_primary(int device, void **context);

// The device that calls of this thread act on.
int rt_device_current(int *device);

// What an array of these channels is to the driver; RT_INVALID_CHANNEL_DESCRIPTOR when
// there is no such format.
int rt_channel_to_driver(const rt_channel *channel, int *format, unsigned *channels);

// What a graph's kernel is to the driver.
int rt_kernel_node_to_driver(const rt_kernel_node *in, cu_kernel_node *out);

// cuGetProcAddress as the driver gave it, with 11's shape mapped to 12's.
int rt_proc_address(const char *name, void **function, int version, unsigned long long flags, int *status);

#endif
