// An auditor of the dynamic loader (rtld-audit(7)): whatever a program asks for by the name of a library that lies in
// this object's folder is the one here. The search path alone does not do that: PyTorch's objects have an RPATH, which
// the loader searches before LD_LIBRARY_PATH, and programs open the vendor's libraries by whole paths.
//
// The loader calls with its lock held, and copies the name that it gets.
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

// Values of link.h, which declares the functions below for auditors.
enum { SEARCHED_BY_NAME = 0x01 }; // LA_SER_ORIG: as the program has it, before the search

static char folder[PATH_MAX];

// What the loader offers is taken, whatever its number: no structure is read.
EXPORT unsigned la_version(unsigned offered)
{
	Dl_info self;
	if (!dladdr((void *)la_version, &self) || !self.dli_fname || strlen(self.dli_fname) >= sizeof folder)
		return 0; // the loader drops this object, and the program goes on without it
	strcpy(folder, self.dli_fname);
	char *slash = strrchr(folder, '/');
	if (!slash)
		return 0;
	*slash = '\0';
	return offered;
}

// The driver's name in programs that compile against it.
static const char *plain_name(const char *name)
{
	return strcmp(name, "libcuda.so") ? name : "libcuda.so.1";
}

EXPORT char *la_objsearch(const char *name, uintptr_t *who, unsigned how)
{
	static char path[PATH_MAX];
	(void)who;
	const char *slash = strrchr(name, '/'), *last = plain_name(slash ? slash + 1 : name);
	if (how != SEARCHED_BY_NAME || strncmp(last, "lib", 3) != 0)
		return (char *)name;
	int length = snprintf(path, sizeof path, "%s/%s", folder, last);
	return length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0 ? path : (char *)name;
}
