// A pool and its blocks passed to another process: the same memory, paid for once.
#include "cu.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int pair[2];
static char account[64];

static void begin(void)
{
	void *context;
	CHECK_OK(cuInit(0));
	CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK_OK(cuCtxSetCurrent(context));
}

// Bytes and at most one descriptor through the socket.
static void send_to(int socket, const void *data, size_t bytes, int fd)
{
	char control[CMSG_SPACE(sizeof fd)] = {0};
	struct iovec part = {(void *)data, bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof control;
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		*header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(header), &fd, sizeof fd);
	}
	CHECK_EQ(sendmsg(socket, &message, 0), (long long)bytes);
}

static int receive_from(int socket, void *data, size_t bytes)
{
	int fd = -1;
	char control[CMSG_SPACE(sizeof fd)] = {0};
	struct iovec part = {data, bytes};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	CHECK_EQ(recvmsg(socket, &message, MSG_WAITALL), (long long)bytes);
	if (message.msg_controllen)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

static void tell(int socket) { send_to(socket, checks_failed ? "f" : "x", 1, -1); }
static void await(int socket)
{
	char byte = 0;
	CHECK_EQ(receive_from(socket, &byte, 1), -1);
	CHECK_EQ(byte, 'x');
}

static int importer(void)
{
	cu_pool_export tickets[2], junk = {{1}};
	cu_ptr a, b, none;
	void *pool, *found;
	unsigned value = 0;
	begin();
	int fd = receive_from(pair[1], tickets, sizeof tickets);
	long long before = used_now();
	CHECK_OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, CU_HANDLE_FD, 0));
	close(fd);
	CHECK_EQ(cuMemAllocFromPoolAsync(&none, 1, pool, NULL), CU_INVALID_VALUE); // imported pools make nothing
	CHECK_EQ(cuDeviceSetMemPool(0, pool), CU_INVALID_VALUE);
	CHECK_EQ(cuMemPoolExportToShareableHandle(&fd, pool, CU_HANDLE_FD, 0), CU_INVALID_VALUE);
	CHECK_OK(cuMemPoolImportPointer(&a, pool, &tickets[0]));
	CHECK_OK(cuMemPoolImportPointer(&b, pool, &tickets[1]));
	CHECK_EQ(cuMemPoolImportPointer(&none, pool, &junk), CU_INVALID_VALUE);
	CHECK_OK(cuDeviceGetDefaultMemPool(&found, 0));
	CHECK_EQ(cuMemPoolImportPointer(&none, found, &tickets[0]), CU_INVALID_VALUE);
	CHECK_EQ(used_now(), before); // foreign
	CHECK_OK(cuMemcpyDtoH_v2(&value, b + 2 * MIB, 4));
	CHECK_EQ(value, 1234);
	CHECK_OK(cuMemsetD32_v2(a + 40, 4321, 1));
	CHECK_EQ(cuMemsetD8_v2(a, 0, 2000), CU_INVALID_VALUE); // beyond the block
	CHECK_OK(cuPointerGetAttribute(&found, 17, a));
	CHECK(found == pool);
	CHECK_OK(cuMemPoolDestroy(pool)); // its blocks go on
	CHECK_OK(cuMemFreeAsync(a, NULL));
	CHECK_OK(cuMemFree_v2(b));
	CHECK_EQ(cuMemFree_v2(b), CU_INVALID_VALUE);
	tell(pair[1]);
	await(pair[1]);
	return checks_failed ? 99 : 0;
}

int main(void)
{
	int status = -1, fd = -1;
	void *pool;
	cu_ptr a, b, same;
	unsigned value = 0;
	const cu_pool_props props = {
		.type = CU_ALLOCATION_PINNED, .handle_types = CU_HANDLE_FD, .location = {CU_LOCATION_DEVICE, 0}};
	snprintf(account, sizeof account, "/tmp/nullcuda-account-%d", getpid());
	setenv("NULLCUDA_SHARED", account, 1);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fflush(NULL);
	pid_t child = fork(); // before this process initialises
	if (!child) {
		_exit(importer());
	}
	begin();
	CHECK_OK(cuMemPoolCreate(&pool, &props));
	CHECK_OK(cuMemAllocFromPoolAsync(&a, 1000, pool, NULL));
	CHECK_OK(cuMemAllocFromPoolAsync(&b, 3 * MIB, pool, NULL)); // not on a page: 1024 bytes into the chunk
	CHECK_EQ(b - a, 1024);
	CHECK_OK(cuMemsetD32_v2(b + 2 * MIB, 1234, 1));
	CHECK_EQ(used_now(), 32 * MIB);
	CHECK_OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_HANDLE_FD, 0));
	cu_pool_export tickets[2];
	CHECK_OK(cuMemPoolExportPointer(&tickets[0], a));
	CHECK_OK(cuMemPoolExportPointer(&tickets[1], b));
	send_to(pair[0], tickets, sizeof tickets, fd);
	await(pair[0]);
	CHECK_OK(cuMemcpyDtoH_v2(&value, a + 40, 4));
	CHECK_EQ(value, 4321); // what the importer wrote
	// The process that made a pool may import it as well.
	void *own;
	CHECK_OK(cuMemPoolImportFromShareableHandle(&own, (void *)(intptr_t)fd, CU_HANDLE_FD, 0));
	CHECK_OK(cuMemPoolImportPointer(&same, own, &tickets[1]));
	CHECK(same != b);
	CHECK_OK(cuMemcpyDtoH_v2(&value, same + 2 * MIB, 4));
	CHECK_EQ(value, 1234);
	CHECK_OK(cuMemFree_v2(same));
	CHECK_OK(cuMemPoolDestroy(own));
	close(fd);
	CHECK_OK(cuMemFreeAsync(a, NULL));
	CHECK_OK(cuMemFreeAsync(b, NULL));
	CHECK_OK(cuMemPoolDestroy(pool));
	CHECK_EQ(used_now(), 0);
	tell(pair[0]);
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
	unlink(account);
	return check_done("driver_pool_share");
}
