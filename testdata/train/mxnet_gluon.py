"""Trains a multilayer perceptron with MXNet Gluon and Adam."""
import os

os.environ.setdefault("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0")
import mxnet  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402

import oracle  # noqa: E402

INPUTS, HIDDEN, CLASSES, BATCH = 1024, 4096, 10, 64


def counters():
    """{device: bytes free and in all}; MXNet counts nothing else."""
    values = {}
    for device in range(mxnet.context.num_gpus()):
        free, total = mxnet.context.gpu_memory_info(device)
        values[str(device)] = {"device_free": free, "device_total": total}
    return values


def main():
    options = oracle.parser(__doc__).parse_args()
    oracle.need_devices(1, mxnet.context.num_gpus())
    gpu = mxnet.gpu(0)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(HIDDEN, activation="relu", in_units=INPUTS), gluon.nn.Dense(CLASSES, in_units=HIDDEN))
    net.initialize(ctx=gpu)
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    inputs = mxnet.nd.zeros((BATCH, INPUTS), ctx=gpu)
    labels = mxnet.nd.zeros((BATCH,), ctx=gpu)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(options.steps):
        oracle.step()
        with autograd.record():
            loss = criterion(net(inputs), labels)
        loss.backward()
        trainer.step(BATCH)
    mxnet.nd.waitall()
    print(f"{options.steps} steps, {counters()['0']['device_free']} bytes free")
    oracle.finish(options, net, trainer, inputs, labels, loss, synchronize=mxnet.nd.waitall, counters=counters)


if __name__ == "__main__":
    main()
