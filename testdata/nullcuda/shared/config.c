#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (1024ull * 1024 * 1024)

static struct nc_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

// Parses a byte count with an optional binary suffix. False when the text is
// anything else or does not fit 64 bits.
static int parse_bytes(const char *text, uint64_t *bytes)
{
	if (text[0] < '0' || text[0] > '9')
		return 0;
	char *end;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno)
		return 0;
	int shift = 0;
	switch (*end) {
	case 'k': case 'K': shift = 10; end++; break;
	case 'm': case 'M': shift = 20; end++; break;
	case 'g': case 'G': shift = 30; end++; break;
	case 't': case 'T': shift = 40; end++; break;
	}
	if (*end || number > UINT64_MAX >> shift)
		return 0;
	*bytes = (uint64_t)number << shift;
	return 1;
}

// The variable's value when it lies in [low, high], else the default. `what`
// completes the sentence that tells the user what would have been accepted.
static uint64_t bytes_from(const char *name, uint64_t low, uint64_t high, uint64_t fallback, const char *what)
{
	const char *text = getenv(name);
	uint64_t value;
	if (!text || !*text)
		return fallback;
	if (parse_bytes(text, &value) && value >= low && value <= high)
		return value;
	fprintf(stderr, "nullcuda: %s=%s ignored, using %llu: give %s\n", name, text, (unsigned long long)fallback, what);
	return fallback;
}

static uint64_t page_bytes(void)
{
	const uint64_t page = 2 << 20;
	uint64_t bytes = bytes_from("NULLCUDA_PAGES", 0, page, 0, "2M, or 0 for units of 512 bytes");
	if (!bytes || bytes == page)
		return bytes;
	fprintf(stderr, "nullcuda: NULLCUDA_PAGES=%s ignored, using 0: give 2M, or 0 for units of 512 bytes\n",
		getenv("NULLCUDA_PAGES"));
	return 0;
}

static enum nc_nvml_mode nvml_mode(void)
{
	static const char *const names[] = {
		[NC_NVML_NO_PROCESSES] = "no-processes", [NC_NVML_FOREIGN_PIDS] = "foreign-pids", [NC_NVML_MIG] = "mig"};
	const char *text = getenv("NULLCUDA_NVML");
	if (!text || !*text)
		return NC_NVML_PLAIN;
	for (int mode = NC_NVML_NO_PROCESSES; mode <= NC_NVML_MIG; mode++)
		if (strcmp(text, names[mode]) == 0)
			return mode;
	fprintf(stderr, "nullcuda: NULLCUDA_NVML=%s ignored: give no-processes, foreign-pids or mig\n", text);
	return NC_NVML_PLAIN;
}

static void config_read(void)
{
	const uint64_t size_max = 16 * 1024 * GIB;
	config.devices = (int)bytes_from("NULLCUDA_DEVICES", 1, NC_MAX_DEVICES, 1, "a number of devices from 1 to 8");
	config.device_bytes = bytes_from("NULLCUDA_MEM", 1 << 20, size_max, 80 * GIB,
	                                 "the bytes of each device, 1M to 16T, with K, M, G or T for binary units");
	config.context_bytes = bytes_from("NULLCUDA_CONTEXT", 0, config.device_bytes, 0,
	                                  "the bytes that one context occupies, at most NULLCUDA_MEM");
	config.reserved_bytes = bytes_from("NULLCUDA_RESERVED", 0, config.device_bytes, 0,
	                                   "the bytes of each device that are never free, at most NULLCUDA_MEM");
	config.page_bytes = page_bytes();
	config.nvml = nvml_mode();
	config.driver_version = (int)bytes_from("NULLCUDA_DRIVER_VERSION", 2000, 99990, 13000,
	                                        "a CUDA version as 1000*major + 10*minor, for example 12040");
	config.shared = getenv("NULLCUDA_SHARED");
	if (config.shared && !*config.shared)
		config.shared = NULL;
	config.log = getenv("NULLCUDA_LOG");
	if (config.log && !*config.log)
		config.log = NULL;
	// The program may change its environment later; these two must not dangle.
	config.shared = config.shared ? strdup(config.shared) : NULL;
	config.log = config.log ? strdup(config.log) : NULL;
}

const struct nc_config *nc_config(void)
{
	pthread_once(&config_once, config_read);
	return &config;
}

void nc_device_uuid(int device, bool mig, unsigned char uuid[16])
{
	static const unsigned char base[16] = {0x6e, 0x75, 0x6c, 0x6c, 0x67, 0x70, 0x40, 0x00,
	                                       0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
	memcpy(uuid, base, 16);
	uuid[14] = mig;
	uuid[15] = (unsigned char)device;
}

void nc_device_uuid_text(int device, bool mig, char text[41])
{
	unsigned char u[16];
	nc_device_uuid(device, mig, u);
	snprintf(text, 41, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", mig ? "MIG" : "GPU",
		u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}
