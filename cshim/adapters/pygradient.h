/* Gradients of parameters that nobody steps just now. PyTorch writes a parameter's gradient without the interpreter's
 * lock: a backward pass accumulates into it, and while p.grad = None lets the old one go the lock is given up, with the
 * parameter still referring to what is being freed. Whoever reads it then brings a dead tensor back to life, and the
 * interpreter frees it twice. So other threads have to stand where they cannot be at that. Internal to the adapters. */
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
