/* Queries the process's devices once, when the first context exists: earlier the driver may not be initialised, later
 * the program may have ended. */
#pragma once

/* On the thread whose call made or found the context. Makes no context and touches no stream; once the devices are
 * known, it costs one load. */
void mt_probe_devices(void);
