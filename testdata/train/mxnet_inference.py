"""Runs a model without training it, and ends with the model still there."""
import json
import os
import sys

import mxnet
from mxnet import gluon

import mxnet_oracle

gpu = mxnet.gpu(0)
net = gluon.nn.HybridSequential(prefix="inference_")
with net.name_scope():
    net.add(gluon.nn.Dense(300, in_units=200), gluon.nn.BatchNorm(in_channels=300), gluon.nn.Dense(10, in_units=300))
net.initialize(ctx=gpu)
net.hybridize()
mxnet_oracle.wait_for_names()
net(mxnet.nd.ones((4, 200), ctx=gpu)).wait_to_read()
with open(os.path.abspath(sys.argv[1]), "w") as file:
    json.dump(mxnet_oracle.sizes(net, None), file)
