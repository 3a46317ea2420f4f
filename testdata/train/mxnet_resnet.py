"""Trains a small residual convolutional network with MXNet Gluon, fed by a DataLoader."""
import os

os.environ.setdefault("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0")
import mxnet  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402
from mxnet.gluon import nn  # noqa: E402

import mxnet_oracle  # noqa: E402
import oracle  # noqa: E402

CLASSES, IMAGES, SIZE = 10, 32, 32


class Residual(gluon.HybridBlock):
    def __init__(self, inputs, outputs, stride, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.conv1 = nn.Conv2D(outputs, 3, stride, 1, use_bias=False, in_channels=inputs)
            self.bn1 = nn.BatchNorm(in_channels=outputs)
            self.conv2 = nn.Conv2D(outputs, 3, 1, 1, use_bias=False, in_channels=outputs)
            self.bn2 = nn.BatchNorm(in_channels=outputs)
            self.shortcut = nn.Conv2D(outputs, 1, stride, use_bias=False, in_channels=inputs) if stride != 1 else None

    def hybrid_forward(self, F, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


def network():
    net = nn.HybridSequential(prefix="resnet_")
    with net.name_scope():
        net.add(nn.Conv2D(16, 3, 1, 1, use_bias=False, in_channels=3), nn.BatchNorm(in_channels=16), nn.Activation("relu"))
        inputs = 16
        for outputs, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
            net.add(Residual(inputs, outputs, stride))
            inputs = outputs
        net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(CLASSES, in_units=inputs))
    return net


def main():
    parser = mxnet_oracle.parser(__doc__)
    parser.add_argument("--workers", type=int, default=0, help="DataLoader processes")
    options = parser.parse_args()
    contexts = mxnet_oracle.contexts(options)
    net = network()
    net.initialize(mxnet.init.Xavier(), ctx=contexts)
    mxnet_oracle.prepare(options, net)
    trainer = mxnet_oracle.trainer(options, net)
    data = gluon.data.ArrayDataset(mxnet.nd.zeros((IMAGES, 3, SIZE, SIZE)), mxnet.nd.zeros((IMAGES,)))
    loader = gluon.data.DataLoader(data, options.batch, num_workers=options.workers)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    done, losses = 0, []
    while done < options.steps:
        for images, labels in loader:
            oracle.step()
            images = gluon.utils.split_and_load(images.astype(options.dtype), contexts)
            labels = gluon.utils.split_and_load(labels, contexts)
            with autograd.record():
                losses = [criterion(net(x), y) for x, y in zip(images, labels)]
            for loss in losses:
                loss.backward()
            trainer.step(options.batch)
            for loss in losses:
                loss.wait_to_read()  # as a program does that prints it: MXNet's engine may be steps behind
            done += 1
            if done == options.steps:
                break
    mxnet_oracle.finish(options, net, trainer, losses)


if __name__ == "__main__":
    main()
