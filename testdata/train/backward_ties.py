"""Backward passes that are not the usual ones. Each case is a function of its own, so that what its backward takes can be told by the forward function that it is tied to.

Prints JSON: {case: bytes that its backward takes at least, each in blocks of a size that no other case has}.
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


def two_threads():
    together = threading.Barrier(2)

    def train(forward, mib):
        for _ in range(20):
            loss = forward(tensor(mib)).sum()
            together.wait()  # both have made operators of the same numbers
            loss.backward()
            together.wait()

    def left_thread(x):
        return x.exp()

    def right_thread(x):
        return x.sin()

    threads = [threading.Thread(target=train, args=case) for case in ((left_thread, 11), (right_thread, 13))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected["left_thread"] = 20 * 11 * MIB
    expected["right_thread"] = 20 * 2 * 13 * MIB  # the cosine, and its product


def two_devices():
    def first_device(x):
        return x.exp()

    def second_device(x):
        return x.sin()

    first, second = first_device(tensor(15, "cuda:0")), second_device(tensor(17, "cuda:1"))
    (first.sum() + second.sum().to("cuda:0")).backward()
    expected["first_device"] = 15 * MIB
    expected["second_device"] = 17 * MIB


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
    for case in (custom_function, checkpointed, checkpointed_again, double_backward, two_threads, two_devices):
        case()
    print(json.dumps(expected))


if __name__ == "__main__":
    main()
