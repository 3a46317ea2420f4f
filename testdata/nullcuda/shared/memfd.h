// Files that have no name, by the system call: glibc before 2.27 has no function.
#ifndef NULLCUDA_MEMFD_H
#define NULLCUDA_MEMFD_H

#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

// Returns a descriptor that is closed on exec, or -1 with errno set.
static inline int nc_memfd(const char *name)
{
	return (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC);
}

#endif
