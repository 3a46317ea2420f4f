#include "fabric.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ticket {
	char magic[16];
	int32_t pid, fd;
	uint64_t inode; // which memfd that was
};
_Static_assert(sizeof(struct ticket) <= sizeof(cu_fabric_handle), "a ticket must fit a handle");
static const char ticket_magic[16] = "nullcuda fabric";

cu_result nc_fabric_export(int fd, cu_fabric_handle *out)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return CU_OPERATING_SYSTEM;
	struct ticket ticket = {.pid = getpid(), .fd = fd, .inode = st.st_ino};
	memcpy(ticket.magic, ticket_magic, sizeof ticket.magic);
	*out = (cu_fabric_handle){{0}};
	memcpy(out->data, &ticket, sizeof ticket);
	return CU_OK;
}

cu_result nc_fabric_import(const cu_fabric_handle *in, int *fd)
{
	char path[64];
	struct stat st;
	struct ticket ticket;
	memcpy(&ticket, in->data, sizeof ticket);
	if (memcmp(ticket.magic, ticket_magic, sizeof ticket.magic))
		return CU_INVALID_VALUE;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket.pid, ticket.fd);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return CU_INVALID_VALUE;
	if (fstat(*fd, &st) == 0 && st.st_ino == ticket.inode)
		return CU_OK;
	close(*fd);
	return CU_INVALID_VALUE;
}
