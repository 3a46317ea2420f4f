// The way to the driver: found once, then only through its look-up function.
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { FLAG_DEFAULT = 0, FLAG_PER_THREAD = 2 };

struct rt_call_set rt_call_sets[2];

struct call_row {
	const char *name;
	int version;
	int thread_version; // 0: no per-thread twin
	size_t offset;
};

static const struct call_row rows[] = {
#define RT_CALL(field, driver, version, parameters) {#driver, version, 0, offsetof(struct rt_call_set, field)},
#define RT_CALL_TWIN(field, driver, version, thread_version, parameters) \
	{#driver, version, thread_version, offsetof(struct rt_call_set, field)},
#define RT_FORWARD(field, driver, version, parameters, arguments) RT_CALL(field, driver, version, parameters)
#define RT_FORWARD_INIT RT_FORWARD
#define RT_FORWARD_TWIN(field, driver, version, thread_version, parameters, arguments) \
	RT_CALL_TWIN(field, driver, version, thread_version, parameters)
#include "calls.def"
#include "forward.def"
};

static union {
#if RT_MAJOR == 11
	int (*get)(const char *name, void **function, int version, unsigned long long flags);
#else
	int (*get)(const char *name, void **function, int version, unsigned long long flags, int *status);
#endif
	void *symbol;
} look_up;

static int outcome;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int unknown(void) { return RT_NOT_SUPPORTED; }

bool rt_call_known(const void *function) { return function != (const void *)unknown; }

int rt_proc_address(const char *name, void **function, int version, unsigned long long flags, int *status)
{
	enum { FOUND, NOT_FOUND };
	void *found = NULL;
	*status = NOT_FOUND;
#if RT_MAJOR == 11
	int result = look_up.get(name, &found, version, flags);
	if (result == CU_OK && found)
		*status = FOUND;
#else
	int result = look_up.get(name, &found, version, flags, status);
	if (result == CU_OK && !found && *status == FOUND)
		*status = NOT_FOUND;
#endif
	*function = *status == FOUND ? found : NULL;
	return result;
}

static void *resolve(const char *name, int version, unsigned long long flags)
{
	void *function;
	int status;
	rt_proc_address(name, &function, version, flags, &status);
	return function ? function : (void *)unknown;
}

static void resolve_all(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct call_row *row = &rows[i];
		void *legacy = resolve(row->name, row->version, FLAG_DEFAULT);
		void *threaded = row->thread_version ? resolve(row->name, row->thread_version, FLAG_PER_THREAD) : legacy;
		memcpy((char *)&rt_call_sets[0] + row->offset, &legacy, sizeof legacy);
		memcpy((char *)&rt_call_sets[1] + row->offset, &threaded, sizeof threaded);
	}
}

static int bring_up(void)
{
	int version = 0;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		return RT_INSUFFICIENT_DRIVER;
#if RT_MAJOR >= 13 // from 13 on the version is asked for beforehand
	int (*get_version)(int *);
	*(void **)&get_version = dlsym(driver, "cuDriverGetVersion");
	if (!get_version || get_version(&version) != CU_OK || version / 1000 < RT_MAJOR)
		return RT_INSUFFICIENT_DRIVER;
#endif
	look_up.symbol = dlsym(driver, RT_MAJOR == 11 ? "cuGetProcAddress" : "cuGetProcAddress_v2");
	if (!look_up.symbol)
		return RT_INSUFFICIENT_DRIVER;
	resolve_all();
	if (rt_call_sets[0].cuDriverGetVersion(&version) != CU_OK || version / 1000 < RT_MAJOR)
		return RT_INSUFFICIENT_DRIVER;
	return rt_call_sets[0].cuInit(0);
}

static void bring_up_once(void) { outcome = bring_up(); }

int rt_driver(void)
{
	pthread_once(&once, bring_up_once);
	return outcome;
}

// Answers 0 where there is no driver, so it must not fail like other calls.
RT_API cudaDriverGetVersion(int *version)
{
	if (!version)
		return rt_done(RT_INVALID_VALUE);
	int found = 0;
	rt_driver();
	if (look_up.symbol)
		rt_call_sets[0].cuDriverGetVersion(&found);
	*version = found;
	return RT_OK;
}

RT_API cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return rt_done(RT_INVALID_VALUE);
	*version = RT_VERSION;
	return RT_OK;
}
