/* Gradients of parameters that no optimizer steps just now. PyTorch writes a parameter's gradient without the
 * interpreter's lock: a backward pass accumulates into it, and while p.grad = None drops the old one the lock is
 * released, with the parameter still referring to what is being freed. A reader would then resurrect a dead tensor, and
 * the interpreter would free it twice. So other threads must be where they cannot be doing that. Internal to the
 * adapters. */
#pragma once

#include <stdbool.h>

bool mt_pygradient_find(void);

/* gradients((tensors, grad, frames, (enabled, disable, enable), (backward, framework, standard))) -> list: what grad
 * gives for each tensor of a list, None where it fails.
 *
 * None instead of the list unless no thread's calls, this one's included, come through a file of the folder backward,
 * and every other thread either waits in the standard library or runs nothing but libraries, none of which is in the
 * folder framework. frames is sys._current_frames; the next three are the collector's functions, which is off
 * meanwhile, as a finalizer would let other threads run. All of them have to be the interpreter's own. */
void *mt_pygradients(void *self, void *arguments);
