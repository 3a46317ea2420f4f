"""Replaces what a model is made of while it is trained: another type, another device, parameters from a file, a model that goes and one that comes. What is measured at the end
is what is there at the end; MXNet's pool keeps the memory of everything before."""
import gc
import os
import tempfile

import mxnet
from mxnet import autograd, gluon

import mxnet_oracle
import oracle

INPUTS, HIDDEN, CLASSES, BATCH = 500, 700, 10, 8


def network(gpu):
    net = gluon.nn.HybridSequential(prefix="replaced_")
    with net.name_scope():
        net.add(gluon.nn.Dense(HIDDEN, activation="relu", in_units=INPUTS), gluon.nn.BatchNorm(in_channels=HIDDEN), gluon.nn.Dense(CLASSES, in_units=HIDDEN))
    net.initialize(ctx=gpu)
    return net


def train(net, gpu, steps, dtype="float32"):
    trainer = gluon.Trainer(net.collect_params(), "adam", {"multi_precision": True})
    for _ in range(steps):
        with autograd.record():
            loss = net(mxnet.nd.ones((BATCH, INPUTS), ctx=gpu, dtype=dtype)).sum()
        loss.backward()
        trainer.step(BATCH)
    mxnet.nd.waitall()
    return trainer


def main():
    options = mxnet_oracle.parser(__doc__).parse_args()
    oracle.need_devices(2, mxnet.context.num_gpus())
    first, second = mxnet.gpu(0), mxnet.gpu(1)
    net = network(first)
    mxnet_oracle.wait_for_names()  # or nothing has a name before it is replaced
    trainer = train(net, first, options.steps)
    net.cast("float16")
    del trainer
    train(net, first, options.steps, "float16")
    other = network(first)
    train(other, first, options.steps)
    del other
    gc.collect()
    net.cast("float32")
    net.collect_params().reset_ctx(second)
    with tempfile.TemporaryDirectory() as folder:
        net.save_parameters(os.path.join(folder, "parameters"))
        net.load_parameters(os.path.join(folder, "parameters"), ctx=second)
    trainer = train(net, second, options.steps)
    mxnet_oracle.finish(options, net, trainer)


if __name__ == "__main__":
    main()
