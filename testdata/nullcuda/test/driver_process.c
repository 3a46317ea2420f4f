// Processes: sharing a device, forks, crashes, and memory passed between them.
#include "cu.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char account[64];

// Runs the function in a forked child and returns its exit status.
static int in_child(int (*function)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		checks_failed = 0;
		int result = function();
		_exit(checks_failed ? 99 : result);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void begin(void)
{
	void *context;
	CHECK_OK(cuInit(0));
	CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK_OK(cuCtxSetCurrent(context));
}

// Two processes: told to go on, and waiting for the other, by one byte each way,
// which also says whether all went well so far.
static int to_child[2], to_parent[2];
static void tell(int fd) { CHECK_EQ(write(fd, checks_failed ? "f" : "x", 1), 1); }
static void await(int fd)
{
	char byte = 0;
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(byte, 'x');
}

static int child_that_holds_memory(void)
{
	cu_ptr a;
	begin();
	CHECK_OK(cuMemAlloc_v2(&a, 10 * MIB));
	tell(to_parent[1]);
	await(to_child[0]);
	CHECK_EQ(used_now(), 10 * MIB + 20 * MIB); // what the parent took is missing here
	CHECK_EQ(cuMemAlloc_v2(&a, 90 * MIB), CU_OUT_OF_MEMORY);
	tell(to_parent[1]);
	await(to_child[0]);
	return 0;
}

static void test_two_processes_share_a_device(void)
{
	cu_ptr a;
	CHECK_EQ(pipe(to_child), 0);
	CHECK_EQ(pipe(to_parent), 0);
	fflush(NULL);
	pid_t pid = fork(); // before this process initialises
	if (!pid) {
		int result = child_that_holds_memory();
		_exit(checks_failed ? 99 : result);
	}
	await(to_parent[0]);
	begin();
	CHECK_EQ(used_now(), 10 * MIB);
	CHECK_OK(cuMemAlloc_v2(&a, 20 * MIB));
	tell(to_child[1]);
	await(to_parent[0]);
	// Killed without a chance to clean up: its memory comes back all the same.
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK_EQ(used_now(), 20 * MIB);
	cu_ptr b;
	CHECK_OK(cuMemAlloc_v2(&b, 80 * MIB));
	CHECK_OK(cuMemFree_v2(b));
	CHECK_OK(cuMemFree_v2(a));
}

static int child_of_an_initialised_process(void)
{
	cu_ptr a;
	int count;
	size_t bytes;
	CHECK_EQ(cuInit(0), CU_NOT_INITIALIZED);
	CHECK_EQ(cuMemAlloc_v2(&a, 1), CU_NOT_INITIALIZED);
	CHECK_EQ(cuDeviceGetCount(&count), CU_NOT_INITIALIZED);
	CHECK_EQ(cuMemGetInfo_v2(&bytes, &bytes), CU_NOT_INITIALIZED);
	CHECK_EQ(cuStreamSynchronize(NULL), CU_NOT_INITIALIZED);
	return 0;
}

static void test_forks(void)
{
	CHECK_EQ(in_child(child_of_an_initialised_process), 0);
	// A raw clone, unseen by libc and so by any fork handler.
	fflush(NULL);
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		_exit(cuInit(0) == CU_NOT_INITIALIZED ? 0 : 1);
	int status = -1;
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	CHECK_EQ(used_now(), 0); // the parent is as it was
}

static cu_ipc_handle ticket;
static int pass[2], back[2];

static int child_that_opens_memory(void)
{
	cu_ptr a, again;
	unsigned value = 0;
	begin();
	CHECK_EQ(read(pass[0], &ticket, sizeof ticket), (int)sizeof ticket);
	long long before = used_now();
	CHECK_OK(cuIpcOpenMemHandle_v2(&a, ticket, 1));
	CHECK_OK(cuIpcOpenMemHandle_v2(&again, ticket, 1));
	CHECK_EQ(a, again);
	CHECK_EQ(used_now(), before); // foreign
	CHECK_OK(cuMemcpyDtoH_v2(&value, a + 4000, 4));
	CHECK_EQ(value, 1234);
	CHECK_OK(cuMemsetD32_v2(a + 8000, 4321, 1));
	CHECK_EQ(cuMemFree_v2(a), CU_INVALID_VALUE); // closed, not freed
	CHECK_OK(cuIpcCloseMemHandle(a));
	CHECK_OK(cuMemcpyDtoH_v2(&value, a + 4000, 4)); // opened twice
	CHECK_OK(cuIpcCloseMemHandle(a));
	CHECK_EQ(cuIpcCloseMemHandle(a), CU_INVALID_VALUE);
	tell(back[1]);
	await(pass[0]);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, ticket, 1), CU_MAP_FAILED); // freed meanwhile
	cu_ipc_handle junk = {{1, 2, 3}};
	CHECK_EQ(cuIpcOpenMemHandle_v2(&a, junk, 1), CU_INVALID_HANDLE);
	return 0;
}

static void start_opener(pid_t *pid)
{
	CHECK_EQ(pipe(pass), 0);
	CHECK_EQ(pipe(back), 0);
	fflush(NULL);
	*pid = fork();
	if (*pid)
		return;
	int result = child_that_opens_memory();
	_exit(checks_failed ? 99 : result);
}

static void test_memory_between_processes(pid_t opener)
{
	cu_ptr a, opened;
	unsigned value = 0;
	int status = -1;
	CHECK_OK(cuMemAlloc_v2(&a, 3 * MIB));
	CHECK_OK(cuMemsetD32_v2(a + 4000, 1234, 1));
	CHECK_OK(cuIpcGetMemHandle(&ticket, a));
	CHECK_OK(cuMemcpyDtoH_v2(&value, a + 4000, 4));
	CHECK_EQ(value, 1234); // moving the pages kept them
	CHECK_EQ(cuIpcOpenMemHandle_v2(&opened, ticket, 1), CU_INVALID_CONTEXT); // not in the process itself
	CHECK_EQ(cuIpcGetMemHandle(&ticket, 64), CU_INVALID_VALUE);
	CHECK_EQ(write(pass[1], &ticket, sizeof ticket), (int)sizeof ticket);
	await(back[0]);
	CHECK_OK(cuMemcpyDtoH_v2(&value, a + 8000, 4));
	CHECK_EQ(value, 4321); // what the other process wrote
	CHECK_OK(cuMemFree_v2(a));
	tell(pass[1]);
	waitpid(opener, &status, 0);
	CHECK_EQ(status, 0);
}

// An exec keeps the pid; what the process held before must not count for ever.
static void test_exec(char **argv)
{
	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		setenv("NULLCUDA_TEST_EXEC", "first", 1);
		execv("/proc/self/exe", argv);
		_exit(98);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
}

static int run_exec_stage(const char *stage, char **argv)
{
	cu_ptr a;
	begin();
	CHECK_EQ(used_now(), 0);
	CHECK_OK(cuMemAlloc_v2(&a, 60 * MIB));
	if (strcmp(stage, "first") == 0) {
		setenv("NULLCUDA_TEST_EXEC", "second", 1);
		execv("/proc/self/exe", argv);
	}
	return checks_failed ? 99 : 0;
}

int main(int argc, char **argv)
{
	(void)argc;
	const char *stage = getenv("NULLCUDA_TEST_EXEC");
	if (stage)
		return run_exec_stage(stage, argv);
	snprintf(account, sizeof account, "/tmp/nullcuda-account-%d", getpid());
	setenv("NULLCUDA_SHARED", account, 1);
	setenv("NULLCUDA_MEM", "100M", 1);
	pid_t opener;
	start_opener(&opener); // must come to be before this process initialises
	test_exec(argv);
	test_two_processes_share_a_device();
	test_forks();
	test_memory_between_processes(opener);
	unlink(account);
	return check_done("driver_process");
}
