/* The few CUDA structures that hooked calls pass, in our own words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* cudaPitchedPtr: sizes in bytes */
struct mt_cuda_pitched {
  void *ptr;
  size_t pitch, xsize, ysize;
};

/* cudaExtent: width in bytes, height and depth in rows and slices; passed by value */
struct mt_cuda_extent {
  size_t width, height, depth;
};

/* The head of CUmemAllocationProp: where the memory lives */
struct mt_cuda_vmm_prop {
  int type, handle_types;
  int location_type; /* 1: device */
  int location_id;
};

#define MT_CUDA_UNKNOWN 999 /* what a wrapper answers when the real function has vanished */
