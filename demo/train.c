/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `memtrace demo` records where no framework is at hand: the memory of a small training run, without its
 * arithmetic.
 *
 *   train [STEPS]     12 by default
 *
 * A stack of layers with activations that live until their backward pass, gradients, two words of optimizer state for
 * each parameter from the first update on, and a list of losses that nobody empties: the leak that the report is to
 * find.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "memtrace.h"

#define LAYERS 8
#define WIDTH 1024ul
#define BATCH 4096ul
#define WEIGHTS (4 * WIDTH * WIDTH * sizeof(float)) /* bytes of one layer */
#define ACTIVATION (BATCH * WIDTH * sizeof(float))
#define HISTORY (2ul << 20)
#define MAX_STEPS 1000

/* The runtime's own, declared here so that no CUDA is needed to compile this. */
int cudaMalloc(void **out, size_t size);
int cudaFree(void *address);

struct layer {
  void *weights, *gradients, *momentum, *variance, *activation;
};

static struct layer layers[LAYERS];
static void *history[MAX_STEPS];

static void check(int error) {
  if (error) {
    fprintf(stderr, "train: cudaMalloc: error %d\n", error);
    exit(1);
  }
}

static void load_model(void) {
  MEMTRACE_TAG_SCOPE("model");
  for (int i = 0; i < LAYERS; i++) check(cudaMalloc(&layers[i].weights, WEIGHTS));
}

static void forward(void) {
  MEMTRACE_TAG_SCOPE("forward");
  for (int i = 0; i < LAYERS; i++) {
    check(cudaMalloc(&layers[i].activation, ACTIVATION));
    void *workspace;
    check(cudaMalloc(&workspace, ACTIVATION / 2));
    cudaFree(workspace);
  }
}

static void backward(void) {
  MEMTRACE_TAG_SCOPE("backward");
  for (int i = LAYERS - 1; i >= 0; i--) {
    check(cudaMalloc(&layers[i].gradients, WEIGHTS));
    cudaFree(layers[i].activation);
  }
}

static void update(void) {
  MEMTRACE_TAG_SCOPE("optimizer");
  for (int i = 0; i < LAYERS; i++) {
    if (!layers[i].momentum) {
      check(cudaMalloc(&layers[i].momentum, WEIGHTS));
      check(cudaMalloc(&layers[i].variance, WEIGHTS));
    }
    cudaFree(layers[i].gradients);
  }
}

static void keep_loss(int step) {
  MEMTRACE_TAG_SCOPE("losses");
  check(cudaMalloc(&history[step], HISTORY));
}

__attribute__((visibility("default"))) int train(int argc, char **argv);

int train(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 12;
  if (steps < 1 || steps > MAX_STEPS) {
    fprintf(stderr, "train: %s: give a number of steps from 1 to %d\n", argv[1], MAX_STEPS);
    return 2;
  }
  /* Time for the recorder to ask the device what it holds. */
  const struct timespec pause = {.tv_nsec = 30000000};
  load_model();
  for (int step = 0; step < steps; step++) {
    MEMTRACE_STEP(step);
    forward();
    backward();
    update();
    keep_loss(step);
    nanosleep(&pause, NULL);
  }
  return 0;
}
