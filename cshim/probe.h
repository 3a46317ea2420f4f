/* What the process's devices are, asked once, on our own thread, of the driver that the program loaded. */
#pragma once

void mt_probe_devices(void);
