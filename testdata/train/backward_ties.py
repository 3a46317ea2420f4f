"""Backward passes that are not the usual ones. Each case is a function of its own, so that what its backward takes can be told by the forward function that it is tied to.

Prints JSON: {case: bytes that its backward takes at least, each in blocks of a size that no other case has}. Of a case named _inner or _thread these are the bytes exactly:
blocks of an even number of MiB, out of segments of their own, are never larger than asked for.
"""
import json
import sys
import threading
import time

import torch
from torch.optim.optimizer import _global_optimizer_post_hooks
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
expected = {}


def tensor(mib, device="cuda"):
    return torch.ones(mib * MIB // 4, device=device, requires_grad=True)


class Custom(torch.autograd.Function):
    """Its backward is Python code."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def custom_function():
    Custom.apply(tensor(3)).sum().backward()
    expected["custom_function"] = 3 * MIB


def checkpointed():
    def checkpointed_part(x):
        return (x.exp() * 2).sin()

    checkpoint(checkpointed_part, tensor(5), use_reentrant=False).sum().backward()
    expected["checkpointed_part"] = 3 * 5 * MIB


def checkpointed_again():
    def reentrant_part(x):
        return (x.exp() * 2).sin()

    checkpoint(reentrant_part, tensor(7), use_reentrant=True).sum().backward()
    expected["reentrant_part"] = 3 * 7 * MIB


def double_backward():
    x = tensor(9)

    def first_order():
        y = x.exp()
        return torch.autograd.grad(y.sum(), x, create_graph=True)[0]

    def second_order(gradient):
        return (gradient * gradient).sum()

    second_order(first_order()).backward()
    expected["first_order"] = 9 * MIB
    expected["second_order"] = 2 * 9 * MIB


def second_order_again():
    """Gradients of gradients, in parts that are computed again: their operators are recorded in the thread of the backward pass, and numbered there."""
    torch.cuda.empty_cache()

    def gradient_of(y, x):
        return torch.autograd.grad(y.sum(), x, create_graph=True)[0]

    def reentrant_inner(x):
        with torch.enable_grad():
            return gradient_of(x.exp(), x).sin()

    def other_inner(x):
        return gradient_of(x.exp(), x).sin()

    checkpoint(reentrant_inner, tensor(18), use_reentrant=True).sum().backward()
    checkpoint(other_inner, tensor(24), use_reentrant=False).sum().backward()
    # the gradient's product, once more when it is computed again; of both forward passes, the cosine and three products more
    expected["reentrant_inner"] = 5 * 18 * MIB
    expected["other_inner"] = 5 * 24 * MIB


def three_threads():
    torch.cuda.empty_cache()
    together = threading.Barrier(3)

    def train(forward, mib):
        for _ in range(20):
            loss = forward(tensor(mib)).sum()
            together.wait()  # all have made operators of the same numbers
            loss.backward()
            together.wait()

    def left_thread(x):
        return x.exp()

    def right_thread(x):
        return x.sin()

    def longer_thread(x):  # its numbers run ahead of the others'
        return x.exp().sin()

    cases = (left_thread, 12), (right_thread, 14), (longer_thread, 22)
    threads = [threading.Thread(target=train, args=case) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected["left_thread"] = 20 * 12 * MIB
    expected["right_thread"] = 20 * 2 * 14 * MIB  # the cosine, and its product
    expected["longer_thread"] = 20 * 3 * 22 * MIB


def handed_over():
    """A graph whose backward another thread asks for than the one that made it."""
    made = []

    def worker_part(x):
        return x.exp()

    worker = threading.Thread(target=lambda: made.append(worker_part(tensor(27)).sum()))
    worker.start()
    worker.join()
    made.pop().backward()
    expected["worker_part"] = 27 * MIB


def two_devices():
    def first_device(x):
        return x.exp()

    def second_device(x):
        return x.sin()

    first, second = first_device(tensor(15, "cuda:0")), second_device(tensor(17, "cuda:1"))
    (first.sum() + second.sum().to("cuda:0")).backward()
    expected["first_device"] = 15 * MIB
    expected["second_device"] = 17 * MIB


def moved():
    def moved_away(x):
        return x.to("cuda:1")

    moved_away(tensor(25, "cuda:0")).sum().backward()
    expected["moved_away"] = 25 * MIB  # on the device that it came from


def wait_for_adapter():
    """Until the library's adapter is at work, which it is soon after the first use of the device."""
    torch.ones(1, device="cuda")
    for _ in range(600):
        if _global_optimizer_post_hooks:
            return
        time.sleep(0.1)
    sys.exit("nobody named any memory")


def main():
    if torch.cuda.device_count() < 2:
        sys.exit("needs 2 GPUs; on the null GPU set NULLCUDA_DEVICES=2")
    wait_for_adapter()
    for case in (custom_function, checkpointed, checkpointed_again, double_backward, second_order_again, three_threads, handed_over, two_devices, moved):
        case()
    print(json.dumps(expected))


if __name__ == "__main__":
    main()
