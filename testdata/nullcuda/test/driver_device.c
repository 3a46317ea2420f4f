// Devices and their configuration, modules and functions.
#include "cu.h"

static void test_devices(void)
{
	int count, device, value;
	char name[64], bus[32];
	cu_uuid uuids[3];
	size_t total;
	CHECK_OK(cuDeviceGetCount(&count));
	CHECK_EQ(count, 3);
	CHECK_EQ(cuDeviceGet(&device, 3), CU_INVALID_DEVICE);
	CHECK_EQ(cuDeviceGet(&device, -1), CU_INVALID_DEVICE);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(cuDeviceGetUuid_v2(&uuids[i], i));
		CHECK_OK(cuDeviceGetPCIBusId(bus, sizeof bus, i));
		CHECK_OK(cuDeviceGetByPCIBusId(&device, bus));
		CHECK_EQ(device, i);
	}
	CHECK(memcmp(&uuids[0], &uuids[1], 16) && memcmp(&uuids[1], &uuids[2], 16));
	CHECK_EQ(cuDeviceGetByPCIBusId(&device, "0000:ff:00.0"), CU_INVALID_DEVICE);
	CHECK_EQ(cuDeviceGetByPCIBusId(&device, "nonsense"), CU_INVALID_VALUE);
	CHECK_OK(cuDeviceGetName(name, sizeof name, 0));
	CHECK(strcmp(name, "Null GPU") == 0);
	CHECK_OK(cuDeviceGetName(name, 5, 0)); // cut, with its zero
	CHECK(strcmp(name, "Null") == 0);
	CHECK_OK(cuDeviceTotalMem_v2(&total, 2));
	CHECK_EQ(total, 3 * GIB);
	CHECK_OK(cuDeviceGetAttribute(&value, 75, 0));
	CHECK_EQ(value, 9);
	CHECK_OK(cuDeviceGetAttribute(&value, 16, 0));
	CHECK_EQ(value, 132);
	for (int attribute = 1; attribute <= 161; attribute++)
		CHECK_OK(cuDeviceGetAttribute(&value, attribute, 0));
	CHECK_EQ(cuDeviceGetAttribute(&value, 100000, 0), CU_INVALID_VALUE);
}

static void test_modules(void)
{
	void *module, *function, *same, *library, *kernel;
	cu_ptr global, again;
	size_t bytes;
	int value, blocks;
	long long before = used_now();
	CHECK_EQ(cuModuleLoadData(&module, NULL), CU_INVALID_VALUE);
	CHECK_OK(cuModuleLoadData(&module, "image"));
	CHECK_OK(cuModuleGetFunction(&function, module, "kernel"));
	CHECK_OK(cuModuleGetFunction(&same, module, "kernel"));
	CHECK(function == same);
	CHECK_OK(cuFuncGetAttribute(&value, 0, function));
	CHECK_EQ(value, 1024);
	CHECK_OK(cuFuncSetAttribute(function, 8, 100000));
	CHECK_OK(cuFuncGetAttribute(&value, 8, function));
	CHECK_EQ(value, 100000);
	CHECK_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
	CHECK_EQ(blocks, 8);
	CHECK_OK(cuLaunchKernel(function, 10, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL));
	CHECK_EQ(cuLaunchKernel(function, 10, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL), CU_INVALID_VALUE);
	CHECK_EQ(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CU_INVALID_VALUE);
	CHECK_OK(cuModuleGetGlobal_v2(&global, &bytes, module, "table"));
	CHECK_OK(cuMemsetD8_v2(global, 1, bytes));
	CHECK_EQ(used_now() - before, (long long)bytes);
	CHECK_OK(cuModuleGetGlobal_v2(&again, NULL, module, "table"));
	CHECK_EQ(global, again);
	CHECK_OK(cuModuleUnload(module));
	CHECK_EQ(used_now(), before);
	CHECK_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CU_INVALID_HANDLE);
	CHECK_OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
	CHECK_OK(cuLibraryGetKernel(&kernel, library, "kernel"));
	CHECK_OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)); // a kernel serves as a function
	CHECK_OK(cuLibraryUnload(library));
	CHECK_EQ(cuLibraryUnload(library), CU_INVALID_HANDLE);
}

// A value that makes no sense is reported on stderr and replaced. Run in a child
// of its own, since the configuration is read once.
static void test_bad_configuration(char **argv)
{
	static const struct {
		const char *name, *value;
	} bad[] = {
		{"NULLCUDA_MEM", "lots"},        {"NULLCUDA_MEM", "-5"},       {"NULLCUDA_MEM", "10X"},
		{"NULLCUDA_MEM", "99999999999999999999"}, {"NULLCUDA_MEM", "17592186044416G"}, {"NULLCUDA_MEM", "1"},
		{"NULLCUDA_DEVICES", "0"},       {"NULLCUDA_DEVICES", "9"},    {"NULLCUDA_CONTEXT", "81G"},
		{"NULLCUDA_DRIVER_VERSION", "x"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char command[256], line[512] = "";
		snprintf(command, sizeof command, "env NULLCUDA_TEST_DEFAULTS=1 %s=%s '%s' 2>&1", bad[i].name, bad[i].value,
			argv[0]);
		FILE *child = popen(command, "r");
		CHECK(child && fgets(line, sizeof line, child));
		if (!strstr(line, bad[i].name) || !strstr(line, bad[i].value) || !strstr(line, "give"))
			fprintf(stderr, "said: %s", line);
		CHECK(strstr(line, bad[i].name) && strstr(line, bad[i].value) && strstr(line, "give"));
		while (fgets(line, sizeof line, child))
			;
		CHECK_EQ(pclose(child), 0);
	}
}

static int check_defaults(void)
{
	int count, version;
	size_t total;
	start();
	CHECK_OK(cuDeviceGetCount(&count));
	CHECK_EQ(count, 1);
	CHECK_OK(cuDeviceTotalMem_v2(&total, 0));
	CHECK_EQ(total, 80 * GIB);
	CHECK_OK(cuDriverGetVersion(&version));
	CHECK_EQ(version, 13000);
	CHECK_EQ(used_now(), 0);
	return checks_failed != 0;
}

int main(int argc, char **argv)
{
	(void)argc;
	if (getenv("NULLCUDA_TEST_DEFAULTS"))
		return check_defaults();
	test_bad_configuration(argv);
	setenv("NULLCUDA_DEVICES", "3", 1);
	setenv("NULLCUDA_MEM", "3G", 1);
	start();
	test_devices();
	test_modules();
	return check_done("driver_device");
}
