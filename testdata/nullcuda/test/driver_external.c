// Memory of another API: mapped, freed, never paid for. A memfd plays the other API.
#include "cu.h"

#include <fcntl.h>
#include <sys/mman.h>

static int other_api(size_t bytes)
{
	int fd = memfd_create("other", MFD_CLOEXEC);
	CHECK_EQ(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

static void *import(int fd, size_t bytes)
{
	void *memory = NULL;
	const cu_external_memory desc = {.type = CU_EXTERNAL_OPAQUE_FD, .fd = fd, .size = bytes};
	CHECK_OK(cuImportExternalMemory(&memory, &desc));
	return memory;
}

static void test_arguments(void)
{
	void *memory;
	cu_ptr a;
	int fd = other_api(MIB), pipes[2];
	cu_external_memory desc = {.type = CU_EXTERNAL_OPAQUE_FD, .fd = fd, .size = MIB + 1};
	CHECK_EQ(cuImportExternalMemory(&memory, &desc), CU_INVALID_VALUE); // larger than what is there
	desc.size = 0;
	CHECK_EQ(cuImportExternalMemory(&memory, &desc), CU_INVALID_VALUE);
	desc.size = MIB, desc.type = 2;
	CHECK_EQ(cuImportExternalMemory(&memory, &desc), CU_NOT_SUPPORTED);
	CHECK_EQ(pipe(pipes), 0);
	desc.type = CU_EXTERNAL_OPAQUE_FD, desc.fd = pipes[0];
	CHECK_EQ(cuImportExternalMemory(&memory, &desc), CU_INVALID_VALUE);
	close(pipes[0]);
	close(pipes[1]);
	memory = import(fd, MIB);
	const cu_external_buffer beyond = {.offset = 4096, .size = MIB}, empty = {.offset = 0},
							 flagged = {.size = 1, .flags = 1};
	CHECK_EQ(cuExternalMemoryGetMappedBuffer(&a, memory, &beyond), CU_INVALID_VALUE);
	CHECK_EQ(cuExternalMemoryGetMappedBuffer(&a, memory, &empty), CU_INVALID_VALUE);
	CHECK_EQ(cuExternalMemoryGetMappedBuffer(&a, memory, &flagged), CU_INVALID_VALUE);
	CHECK_OK(cuDestroyExternalMemory(memory));
	CHECK_EQ(cuDestroyExternalMemory(memory), CU_INVALID_HANDLE);
	CHECK_EQ(fcntl(fd, F_GETFD), -1); // the descriptor went with it
}

static void test_buffer(void)
{
	int fd = other_api(MIB), value = 77, mine = dup(fd);
	cu_ptr a, b;
	long long before = used_now();
	void *memory = import(fd, MIB);
	const cu_external_buffer whole = {.size = MIB}, inner = {.offset = 5000, .size = 1000};
	CHECK_EQ(pwrite(mine, &value, sizeof value, 5100), (int)sizeof value);
	CHECK_OK(cuExternalMemoryGetMappedBuffer(&a, memory, &whole));
	CHECK_OK(cuExternalMemoryGetMappedBuffer(&b, memory, &inner));
	CHECK_EQ(b % 4096, 5000 % 4096);
	CHECK_OK(cuDestroyExternalMemory(memory)); // what is mapped stays
	value = 0;
	CHECK_OK(cuMemcpyDtoH_v2(&value, b + 100, 4));
	CHECK_EQ(value, 77);
	CHECK_OK(cuMemsetD32_v2(a + 8192, 88, 1));
	CHECK_EQ(pread(mine, &value, sizeof value, 8192), (int)sizeof value);
	CHECK_EQ(value, 88);
	CHECK_EQ(cuMemsetD8_v2(b, 0, 1001), CU_INVALID_VALUE);
	CHECK_EQ(cuIpcCloseMemHandle(a), CU_INVALID_VALUE);
	CHECK_EQ(cuMemFreeAsync(a, NULL), CU_INVALID_VALUE);
	CHECK_EQ(used_now(), before);
	CHECK_OK(cuMemFree_v2(a));
	CHECK_OK(cuMemFree_v2(b));
	CHECK_EQ(cuMemFree_v2(b), CU_INVALID_VALUE);
	close(mine);
}

static void test_mipmap(void)
{
	int fd = other_api(MIB), mine = dup(fd);
	void *mipmap, *level, *memory = import(fd, MIB);
	char text[8] = "tile";
	long long before = used_now();
	cu_external_mipmap desc = {.offset = 4096, .array = {64, 64, 0, 0x01, 1, 0}, .levels = 3};
	CHECK_OK(cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc));
	CHECK_OK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
	const cu_copy2d copy = {.src_type = CU_MEMORY_HOST, .src_host = text, .src_pitch = 8, .dst_type = CU_MEMORY_ARRAY,
	                        .dst_array = level, .width = 8, .height = 1};
	CHECK_OK(cuMemcpy2D_v2(&copy));
	memset(text, 0, sizeof text);
	CHECK_EQ(pread(mine, text, sizeof text, 4096 + 64 * 64), (int)sizeof text);
	CHECK(strcmp(text, "tile") == 0);
	CHECK_EQ(used_now(), before);
	CHECK_OK(cuMipmappedArrayDestroy(mipmap));
	desc.offset = MIB - 100;
	CHECK_EQ(cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc), CU_INVALID_VALUE);
	CHECK_OK(cuDestroyExternalMemory(memory));
	close(mine);
}

// All of it dies with its context.
static void test_context_end(void)
{
	void *context, *memory, *mipmap;
	cu_ptr a;
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	memory = import(other_api(MIB), MIB);
	const cu_external_buffer desc = {.offset = 1, .size = 99};
	const cu_external_mipmap levels = {.array = {16, 16, 0, 0x01, 1, 0}, .levels = 1};
	CHECK_OK(cuExternalMemoryGetMappedBuffer(&a, memory, &desc));
	CHECK_OK(cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &levels));
	CHECK_OK(cuCtxDestroy_v2(context));
	CHECK_EQ(cuDestroyExternalMemory(memory), CU_INVALID_HANDLE);
	CHECK_EQ(cuMemFree_v2(a), CU_INVALID_VALUE);
	CHECK_EQ(cuMipmappedArrayDestroy(mipmap), CU_INVALID_HANDLE);
}

int main(void)
{
	start();
	test_arguments();
	test_buffer();
	test_mipmap();
	test_context_end();
	return check_done("driver_external");
}
