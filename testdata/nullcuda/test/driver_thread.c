// Many threads at once: nothing is lost, nothing counted twice.
#include "cu.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 300 };
static void *context, *pool;

// Random enough for a test and the same in every run.
static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void *worker(void *argument)
{
	enum { LIVE = 16 };
	unsigned state = (unsigned)(uintptr_t)argument + 1, failures = 0;
	cu_ptr live[LIVE] = {0};
	void *stream;
	failures += cuCtxSetCurrent(context) != 0;
	failures += cuStreamCreate(&stream, 1) != 0;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned slot = next_random(&state) % LIVE;
		unsigned value = next_random(&state), read_back = ~value;
		if (live[slot]) {
			failures += slot % 2 ? cuMemFree_v2(live[slot]) : cuMemFreeAsync(live[slot], stream);
			live[slot] = 0;
			continue;
		}
		size_t bytes = next_random(&state) % 100000 + 16;
		failures += slot % 2 ? cuMemAlloc_v2(&live[slot], bytes) : cuMemAllocAsync(&live[slot], bytes, stream);
		failures += cuMemsetD32_v2(live[slot], value, bytes / 4);
		failures += cuMemcpyDtoH_v2(&read_back, live[slot] + (bytes / 4 - 1) * 4, 4);
		failures += read_back != value; // another thread's block would show here
		if (i % 50 == 0)
			failures += cuStreamSynchronize(stream);
	}
	for (int i = 0; i < LIVE; i++)
		if (live[i])
			failures += cuMemFree_v2(live[i]);
	failures += cuStreamDestroy_v2(stream);
	return (void *)(uintptr_t)failures;
}

int main(void)
{
	pthread_t threads[THREADS];
	void *failures;
	uint64_t used = 1;
	start();
	CHECK_OK(cuCtxGetCurrent(&context));
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failures);
		CHECK_EQ((uintptr_t)failures, 0);
	}
	CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK_OK(cuMemPoolGetAttribute(pool, 7, &used));
	CHECK_EQ(used, 0);
	CHECK_OK(cuCtxSynchronize());
	CHECK_EQ(used_now(), 0);
	return check_done("driver_thread");
}
