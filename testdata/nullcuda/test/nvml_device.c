// NVML beside the driver: the same devices, the same bytes, the right processes.
// First with an account shared by two processes, then with a private one.
#include "cu.h"

#include <sys/wait.h>

typedef struct nvml_device *nvml_device;
typedef struct { ull total, free, used; } nvml_memory;
typedef struct { unsigned version; ull total, reserved, free, used; } nvml_memory_v2;
typedef struct { unsigned pid; ull used; } nvml_process_v1;
typedef struct { unsigned pid; ull used; unsigned gpu_instance, compute_instance; } nvml_process;
typedef struct {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
} nvml_pci;
typedef struct { unsigned gpu, memory; } nvml_utilization;

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlSystemGetDriverVersion(char *out, unsigned length);
int nvmlSystemGetNVMLVersion(char *out, unsigned length);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device);
int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvml_device *device);
int nvmlDeviceGetIndex(nvml_device device, unsigned *index);
int nvmlDeviceGetName(nvml_device device, char *name, unsigned length);
int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned length);
int nvmlDeviceGetGpuFabricInfoV(nvml_device device, unsigned *info);
int nvmlDeviceGetPciInfo_v3(nvml_device device, nvml_pci *pci);
int nvmlDeviceGetMemoryInfo(nvml_device device, nvml_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(nvml_device device, nvml_memory_v2 *memory);
int nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned *count, nvml_process_v1 *infos);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count, nvml_process *infos);
int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned *count, nvml_process *infos);
int nvmlDeviceGetUtilizationRates(nvml_device device, nvml_utilization *utilization);
int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *degrees);
int nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending);
int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor);

enum { UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, WRONG_VERSION = 25 };

static void test_system(void)
{
	char text[80], name[16];
	unsigned count;
	int version;
	CHECK_EQ(nvmlDeviceGetCount_v2(&count), UNINITIALIZED);
	CHECK_EQ(nvmlShutdown(), UNINITIALIZED);
	CHECK_OK(nvmlInit_v2());
	CHECK_OK(nvmlInit_v2()); // counted
	CHECK_OK(nvmlShutdown());
	CHECK_OK(nvmlDeviceGetCount_v2(&count));
	CHECK_EQ(count, 2);
	CHECK_OK(nvmlSystemGetDriverVersion(text, sizeof text));
	CHECK(strcmp(text, "999.13.00") == 0);
	CHECK_EQ(nvmlSystemGetDriverVersion(text, 4), TOO_SMALL);
	CHECK_OK(nvmlSystemGetNVMLVersion(text, sizeof text));
	CHECK_OK(nvmlSystemGetCudaDriverVersion_v2(&version));
	CHECK_EQ(version, 13000);
	CHECK_OK(nvmlSystemGetProcessName((unsigned)getpid(), name, sizeof name));
	CHECK(strlen(name) > 0 && strlen(name) < sizeof name);
	CHECK_EQ(nvmlSystemGetProcessName(0x7ffffffe, name, sizeof name), NOT_FOUND);
	CHECK(strcmp(nvmlErrorString(TOO_SMALL), "Insufficient Size") == 0);
}

// No fabric, in as many bytes as the caller's version has and in no more.
static void check_fabric(nvml_device device)
{
	for (unsigned version = 2; version <= 3; version++) {
		unsigned info[11], size = version == 2 ? 36 : 40;
		memset(info, 0xff, sizeof info);
		*info = version << 24 | size;
		CHECK_OK(nvmlDeviceGetGpuFabricInfoV(device, info));
		CHECK_EQ(*info, version << 24 | size);
		CHECK_EQ(info[5], 0);                                     // status of the registration
		CHECK_EQ(((unsigned char *)info)[28], 0);                 // state: not supported
		CHECK_EQ(((unsigned char *)info)[size - 1], 0);
		CHECK_EQ(((unsigned char *)info)[size], 0xff);
	}
	unsigned other[11] = {2u << 24 | 40};
	CHECK_EQ(nvmlDeviceGetGpuFabricInfoV(device, other), 25);
	CHECK_EQ(nvmlDeviceGetGpuFabricInfoV(device, NULL), INVALID);
}

static void test_devices(void)
{
	nvml_device device, same;
	nvml_pci pci;
	char uuid[96], name[96], bus[32];
	cu_uuid driver_uuid;
	unsigned index, current, pending, degrees;
	int major, minor;
	nvml_utilization utilization = {9, 9};
	CHECK_OK(nvmlDeviceGetHandleByIndex_v2(1, &device));
	CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(2, &same), INVALID);
	CHECK_OK(nvmlDeviceGetUUID(device, uuid, sizeof uuid));
	CHECK_EQ(strlen(uuid), 40);
	CHECK_OK(cuDeviceGetUuid_v2(&driver_uuid, 1));
	char hex[3];
	int differing = 0;
	for (int i = 0, at = 4; i < 16; i++, at += 2) {
		at += uuid[at] == '-';
		snprintf(hex, sizeof hex, "%02x", driver_uuid.bytes[i]);
		differing += strncmp(uuid + at, hex, 2) != 0;
	}
	CHECK_EQ(differing, 0);
	CHECK_OK(nvmlDeviceGetHandleByUUID(uuid, &same));
	CHECK(same == device);
	CHECK_EQ(nvmlDeviceGetHandleByUUID("GPU-0", &same), NOT_FOUND);
	CHECK_OK(nvmlDeviceGetPciInfo_v3(device, &pci));
	CHECK_OK(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &same));
	CHECK(same == device);
	CHECK_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 1));
	CHECK(strcmp(bus, pci.bus_id_legacy) == 0);
	CHECK_OK(nvmlDeviceGetIndex(device, &index));
	CHECK_EQ(index, 1);
	CHECK_OK(nvmlDeviceGetName(device, name, sizeof name));
	CHECK(strcmp(name, "Null GPU") == 0);
	CHECK_OK(nvmlDeviceGetUtilizationRates(device, &utilization));
	CHECK_EQ(utilization.gpu, 0);
	CHECK_OK(nvmlDeviceGetMigMode(device, &current, &pending));
	CHECK_EQ(current, 0);
	CHECK_OK(nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
	CHECK_EQ(major, 9);
	CHECK_EQ(nvmlDeviceGetTemperature(device, 0, &degrees), NOT_SUPPORTED);
	CHECK_EQ(nvmlDeviceGetName((nvml_device)&name, name, sizeof name), INVALID);
	check_fabric(device);
}

static void check_memory(nvml_device device, ull used)
{
	nvml_memory memory;
	nvml_memory_v2 second = {.version = sizeof second | 2u << 24};
	CHECK_OK(nvmlDeviceGetMemoryInfo(device, &memory));
	CHECK_EQ(memory.total, 200 * MIB);
	CHECK_EQ(memory.used, used);
	CHECK_EQ(memory.free, 200 * MIB - used);
	CHECK_OK(nvmlDeviceGetMemoryInfo_v2(device, &second));
	CHECK_EQ(second.used, used);
	CHECK_EQ(second.reserved, 0);
	second.version = 0;
	CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(device, &second), WRONG_VERSION);
}

static ull used_by(nvml_device device, pid_t pid)
{
	nvml_process infos[8];
	unsigned count = 8;
	CHECK_OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos));
	for (unsigned i = 0; i < count && i < 8; i++)
		if (infos[i].pid == (unsigned)pid)
			return infos[i].used;
	return ~0ull;
}

static int to_child[2], to_parent[2];
static void tell(int fd) { CHECK_EQ(write(fd, "x", 1), 1); }
static void await(int fd) { char byte; CHECK_EQ(read(fd, &byte, 1), 1); }

static pid_t start_holder(void)
{
	CHECK_EQ(pipe(to_child), 0);
	CHECK_EQ(pipe(to_parent), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid)
		return pid;
	void *context;
	cu_ptr a;
	await(to_child[0]);
	CHECK_OK(cuInit(0));
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(cuMemAlloc_v2(&a, 30 * MIB));
	tell(to_parent[1]);
	await(to_child[0]);
	_exit(checks_failed != 0);
}

static void test_memory_and_processes(pid_t holder)
{
	void *context;
	cu_ptr a;
	nvml_device zero, one;
	unsigned count;
	nvml_process_v1 first[2];
	int status = -1;
	CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &zero));
	CHECK_OK(nvmlDeviceGetHandleByIndex_v2(1, &one));
	check_memory(zero, 0);
	count = 0;
	CHECK_OK(nvmlDeviceGetComputeRunningProcesses_v3(zero, &count, NULL)); // no context yet
	CHECK_EQ(count, 0);
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(cuMemAlloc_v2(&a, 50 * MIB));
	check_memory(zero, 60 * MIB);
	check_memory(one, 0);
	tell(to_child[1]);
	await(to_parent[0]);
	check_memory(zero, 100 * MIB);
	CHECK_EQ(used_by(zero, getpid()), 60 * MIB);
	CHECK_EQ(used_by(zero, holder), 40 * MIB);
	count = 0;
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(zero, &count, NULL), TOO_SMALL);
	CHECK_EQ(count, 2);
	count = 1;
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses(zero, &count, first), TOO_SMALL);
	CHECK_EQ(count, 2);
	CHECK_OK(nvmlDeviceGetComputeRunningProcesses(zero, &count, first));
	CHECK_EQ(first[0].used + first[1].used, 100 * MIB);
	count = 5;
	CHECK_OK(nvmlDeviceGetGraphicsRunningProcesses_v3(zero, &count, NULL));
	CHECK_EQ(count, 0);
	tell(to_child[1]);
	waitpid(holder, &status, 0);
	CHECK_EQ(status, 0);
	check_memory(zero, 60 * MIB);
	CHECK_EQ(used_by(zero, holder), ~0ull);
	CHECK_OK(cuCtxDestroy_v2(context));
	check_memory(zero, 0);
	CHECK_EQ(used_by(zero, getpid()), ~0ull);
}

// Kept private, the account is still one for both libraries of this process, and
// a forked child has another.
static void test_private_account(void)
{
	void *context;
	nvml_device zero;
	int status = -1;
	CHECK_OK(cuInit(0));
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(nvmlInit_v2());
	CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &zero));
	check_memory(zero, 10 * MIB);
	CHECK_EQ(used_by(zero, getpid()), 10 * MIB);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		CHECK_OK(nvmlInit_v2());
		check_memory(zero, 0);
		_exit(checks_failed != 0);
	}
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *out);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device device, nvml_device *out);
int nvmlDeviceIsMigDeviceHandle(nvml_device device, unsigned *is);
int nvmlDeviceGetGpuInstanceId(nvml_device device, unsigned *id);
enum { NO_PERMISSION = 4 };

static void check_mig(nvml_device parent)
{
	nvml_device instance, same;
	nvml_process info = {0};
	unsigned count = 1, current = 0, pending = 0, yes = 0, id = 0;
	char uuid[96], hex[3];
	cu_uuid of_gpu, of_instance;
	CHECK_OK(nvmlDeviceGetMigMode(parent, &current, &pending));
	CHECK(current == 1 && pending == 1);
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(parent, &count, &info), NO_PERMISSION);
	CHECK_OK(nvmlDeviceGetMigDeviceHandleByIndex(parent, 0, &instance));
	CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(parent, 1, &same), NOT_FOUND);
	CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(instance, 0, &same), INVALID);
	CHECK_OK(nvmlDeviceIsMigDeviceHandle(instance, &yes));
	CHECK_EQ(yes, 1);
	CHECK_OK(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance, &same));
	CHECK(same == parent);
	CHECK_OK(nvmlDeviceGetComputeRunningProcesses_v3(instance, &count, &info));
	CHECK_EQ(count, 1);
	CHECK_EQ(info.pid, getpid());
	CHECK_EQ(info.used, 10 * MIB);
	CHECK_OK(nvmlDeviceGetGpuInstanceId(instance, &id));
	CHECK_EQ(info.gpu_instance, id);
	CHECK_EQ(info.compute_instance, 0);
	// The driver names the instance, in its second version.
	CHECK_OK(nvmlDeviceGetUUID(instance, uuid, sizeof uuid));
	CHECK(strncmp(uuid, "MIG-", 4) == 0);
	CHECK_OK(nvmlDeviceGetHandleByUUID(uuid, &same));
	CHECK(same == instance);
	CHECK_OK(cuDeviceGetUuid(&of_gpu, 0));
	CHECK_OK(cuDeviceGetUuid_v2(&of_instance, 0));
	CHECK(memcmp(&of_gpu, &of_instance, sizeof of_gpu) != 0);
	snprintf(hex, sizeof hex, "%02x", of_instance.bytes[14]);
	CHECK(strncmp(uuid + strlen(uuid) - 4, hex, 2) == 0);
}

// Machines whose NVML knows less. A configuration is read once: each in its own process.
static void test_mode(const char *mode)
{
	void *context;
	nvml_device zero, none;
	nvml_process info = {0};
	nvml_memory memory;
	nvml_memory_v2 second = {.version = sizeof second | 2u << 24};
	unsigned count = 1;
	CHECK_OK(cuInit(0));
	CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
	CHECK_OK(nvmlInit_v2());
	CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &zero));
	if (strcmp(mode, "mig") == 0) {
		check_mig(zero);
	} else {
		CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(zero, 0, &none), NOT_SUPPORTED);
		CHECK_OK(nvmlDeviceGetComputeRunningProcesses_v3(zero, &count, &info));
		CHECK_EQ(count, 1);
		CHECK_EQ(info.pid == (unsigned)getpid(), strcmp(mode, "foreign-pids") != 0);
		CHECK_EQ(info.used, strcmp(mode, "no-processes") == 0 ? -1 : (long long)(10 * MIB));
	}
	// 40 MiB are reserved in all of these.
	CHECK_OK(nvmlDeviceGetMemoryInfo(zero, &memory));
	CHECK_EQ(memory.used, 50 * MIB);
	CHECK_EQ(memory.free, 150 * MIB);
	CHECK_OK(nvmlDeviceGetMemoryInfo_v2(zero, &second));
	CHECK_EQ(second.used, 10 * MIB);
	CHECK_EQ(second.reserved, 40 * MIB);
	CHECK_EQ(second.free, 150 * MIB);
	CHECK_EQ(second.total, 200 * MIB);
	// CUDA leaves out what is reserved, as real drivers do.
	size_t total = 0;
	CHECK_OK(cuDeviceTotalMem_v2(&total, 0));
	CHECK_EQ(total, 160 * MIB);
	CHECK_OK(cuMemGetInfo_v2(NULL, &total));
	CHECK_EQ(total, 160 * MIB);
	CHECK_EQ(used_now(), 10 * MIB);
	cu_ptr a;
	CHECK_EQ(cuMemAlloc_v2(&a, 150 * MIB + 1), CU_OUT_OF_MEMORY);
	CHECK_OK(cuMemAlloc_v2(&a, 150 * MIB));
	CHECK_OK(cuMemFree_v2(a));
}

static void run_modes(char **argv)
{
	static const char *const modes[] = {"no-processes", "foreign-pids", "mig"};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		int status = -1;
		fflush(NULL);
		pid_t child = fork();
		if (!child) {
			setenv("NULLCUDA_NVML", modes[i], 1);
			setenv("NULLCUDA_RESERVED", "40M", 1);
			setenv("NULLCUDA_SHARED", "none", 1);
			execv("/proc/self/exe", argv);
			_exit(98);
		}
		waitpid(child, &status, 0);
		CHECK_EQ(status, 0);
	}
}

int main(int argc, char **argv)
{
	char account[64];
	(void)argc;
	if (getenv("NULLCUDA_NVML")) {
		test_mode(getenv("NULLCUDA_NVML"));
		return check_done(getenv("NULLCUDA_NVML"));
	}
	setenv("NULLCUDA_MEM", "200M", 1);
	setenv("NULLCUDA_CONTEXT", "10M", 1);
	setenv("NULLCUDA_DEVICES", "2", 1);
	if (getenv("NULLCUDA_TEST_PRIVATE")) {
		test_private_account();
		return check_done("nvml_device, private account");
	}
	snprintf(account, sizeof account, "/tmp/nullcuda-account-%d", getpid());
	setenv("NULLCUDA_SHARED", account, 1);
	run_modes(argv);
	pid_t holder = start_holder(); // before this process initialises
	test_system();
	CHECK_OK(cuInit(0));
	test_devices();
	test_memory_and_processes(holder);
	unlink(account);
	if (check_done("nvml_device"))
		return 1;
	fflush(stdout);
	setenv("NULLCUDA_SHARED", "none", 1);
	setenv("NULLCUDA_TEST_PRIVATE", "1", 1);
	execv("/proc/self/exe", argv);
	perror("/proc/self/exe");
	return 1;
}
