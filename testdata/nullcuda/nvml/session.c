// Initialisation, errors and what is known about the system.
#include "nvml.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nc_account account;
static pid_t account_pid; // a forked child opens its own: a private account is per process
static unsigned sessions;

struct nc_account *nvml_account(void) { return &account; }

int nvml_check(void)
{
	pthread_mutex_lock(&session_lock);
	unsigned open = sessions;
	pthread_mutex_unlock(&session_lock);
	return open ? NVML_OK : NVML_UNINITIALIZED;
}

NVML_API nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	pthread_mutex_lock(&session_lock);
	if (account_pid != getpid()) {
		nc_account_open(&account, nc_config()->shared);
		account_pid = getpid();
	}
	sessions++;
	pthread_mutex_unlock(&session_lock);
	return NVML_OK;
}

NVML_API nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
NVML_API nvmlInit(void) { return nvmlInitWithFlags(0); }

NVML_API nvmlShutdown(void)
{
	pthread_mutex_lock(&session_lock);
	int result = sessions ? NVML_OK : NVML_UNINITIALIZED;
	sessions -= sessions > 0;
	pthread_mutex_unlock(&session_lock);
	return result;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int code)
{
	switch (code) {
	case NVML_OK: return "Success";
	case NVML_UNINITIALIZED: return "Uninitialized";
	case NVML_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_NOT_SUPPORTED: return "Not Supported";
	case NVML_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_NOT_FOUND: return "Not Found";
	case NVML_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ARGUMENT_VERSION_MISMATCH: return "Argument Version Mismatch";
	default: return "Unknown Error";
	}
}

int nvml_copy_text(char *out, unsigned length, const char *text)
{
	if (!out)
		return NVML_INVALID_ARGUMENT;
	size_t bytes = strlen(text) + 1;
	if (length < bytes)
		return NVML_INSUFFICIENT_SIZE;
	memcpy(out, text, bytes);
	return NVML_OK;
}

// A driver release that no vendor driver has, with the CUDA version in it.
static void driver_release(char text[32])
{
	int version = nc_config()->driver_version;
	snprintf(text, 32, "999.%d.%02d", version / 1000, version % 1000 / 10);
}

NVML_API nvmlSystemGetDriverVersion(char *out, unsigned length)
{
	char text[32];
	NVML_TRY(nvml_check());
	driver_release(text);
	return nvml_copy_text(out, length, text);
}

NVML_API nvmlSystemGetNVMLVersion(char *out, unsigned length)
{
	char release[32], text[64];
	NVML_TRY(nvml_check());
	driver_release(release);
	snprintf(text, sizeof text, "%d.%s", nc_config()->driver_version / 1000, release);
	return nvml_copy_text(out, length, text);
}

NVML_API nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!version)
		return NVML_INVALID_ARGUMENT;
	*version = nc_config()->driver_version; // needs no session
	return NVML_OK;
}

NVML_API nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

// The start of the command line, cut to the caller's buffer as NVML does.
NVML_API nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
	char path[64];
	NVML_TRY(nvml_check());
	if (!name || !length)
		return NVML_INVALID_ARGUMENT;
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NVML_NOT_FOUND;
	ssize_t n = read(fd, name, length - 1);
	close(fd);
	name[n > 0 ? n : 0] = 0; // the first argument ends at its own zero
	return NVML_OK;
}
