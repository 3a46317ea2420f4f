// Memory of another API, imported by its descriptor.
#ifndef NULLCUDA_EXTERNAL_H
#define NULLCUDA_EXTERNAL_H

// Closes the descriptor. What was mapped from it stays. nc_lock held.
void nc_external_destroy(void *external);

#endif
