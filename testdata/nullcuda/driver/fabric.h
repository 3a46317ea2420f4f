// Handles that stand for memory on every machine of a fabric: here, in every process of
// this machine.
#ifndef NULLCUDA_FABRIC_H
#define NULLCUDA_FABRIC_H

#include "driver.h"

// What stands for a memfd of this process, for as long as that is open.
cu_result nc_fabric_export(int fd, cu_fabric_handle *out);

// A descriptor of that memfd, which the caller closes. CU_INVALID_VALUE when the exporter
// ended or closed it.
cu_result nc_fabric_import(const cu_fabric_handle *in, int *fd);

#endif
