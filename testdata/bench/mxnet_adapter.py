"""What MXNet's adapter costs a training program: the part of a step that it takes, in one and the same process, step by step.

Run on the null GPU with the library preloaded. The adapter's own part is what stands behind the mark in the code of Trainer._update; it is called once more by
hand after each step, so that both times are of the same moment on the same machine.
"""
import gc
import statistics
import time

import mxnet
from mxnet import autograd, gluon
from mxnet.gluon.trainer import Trainer

LAYERS, WIDTH, STEPS = 60, 256, 200


def mark():
    return next((part for part in Trainer._update.__code__.co_consts if type(part).__name__ == "after"), None)


def main():
    gpu = mxnet.gpu(0)
    net = gluon.nn.HybridSequential()
    for _ in range(LAYERS):
        net.add(gluon.nn.Dense(WIDTH, activation="relu", in_units=WIDTH), gluon.nn.BatchNorm(in_channels=WIDTH))
    net.initialize(ctx=gpu)
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "adam")
    x = mxnet.nd.ones((64, WIDTH), ctx=gpu)
    steps, costs = [], []
    for step in range(STEPS):
        begin = time.perf_counter()
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(64)
        mxnet.nd.waitall()
        middle = time.perf_counter()
        after = mark()
        if after is not None:
            after @ (trainer,)
            costs.append(time.perf_counter() - middle)
        if step > 20:
            steps.append(middle - begin)
    if not costs:
        raise SystemExit("the adapter is not there: preload the library, and let the program run for longer")
    gc.collect()
    typical, whole = statistics.median(costs[2:]), statistics.median(steps)
    print(f"step {whole * 1e3:.2f} ms; adapter: median {typical * 1e6:.0f} us, mean {statistics.mean(costs[2:]) * 1e6:.0f} us, most {max(costs) * 1e6:.0f} us; "
          f"{100 * statistics.mean(costs[2:]) / whole:.2f} % of a step, {len(trainer._params)} parameters")


if __name__ == "__main__":
    main()
