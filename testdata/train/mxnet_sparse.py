"""Updates an embedding by gradients that have only some rows, more of them in every step. The program sets them itself: how many rows a backward pass would make is computed on
the device, and one without arithmetic does not know."""
import mxnet
from mxnet import gluon

import mxnet_oracle
import oracle

WORDS, WIDTH, BATCH = 4000, 64, 16


def sizes(net):
    """{device: bytes} of the embedding, of its optimizer's states and of its gradient as it is after the last step."""
    p = net[0].weight
    gradient, whole = p.grad(), mxnet_oracle.size(p.data())
    return {"0": {"in_arg:" + p.name: whole, "arg_grad:" + p.name: mxnet_oracle.size(gradient.data), "arg_grad:indices:" + p.name: mxnet_oracle.size(gradient.indices),
                  "state:0:" + p.name: whole, "state:1:" + p.name: whole}}


def gradient_of(rows):
    return mxnet.nd.sparse.row_sparse_array((mxnet.nd.ones((rows, WIDTH)), mxnet.nd.arange(rows, dtype="int64")), shape=(WORDS, WIDTH))


def main():
    parser = mxnet_oracle.parser(__doc__)
    options = parser.parse_args()
    gpu = mxnet_oracle.contexts(options)[0]
    net = gluon.nn.Sequential(prefix="sparse_")
    with net.name_scope():
        net.add(gluon.nn.Embedding(WORDS, WIDTH, sparse_grad=True))
    net.initialize(ctx=gpu)
    mxnet_oracle.wait_for_names()
    trainer = gluon.Trainer(net.collect_params(), options.optimizer, {"lazy_update": False})
    for step in range(options.steps):
        oracle.step()
        gradient_of(BATCH * (step + 1)).copyto(net[0].weight.grad())
        net[0].weight.data()._fresh_grad = True
        mxnet.nd.waitall()
        trainer.step(1)
    mxnet.nd.waitall()
    print(f"{options.steps} steps")
    oracle.finish(options, net, trainer, synchronize=mxnet.nd.waitall, counters=lambda: sizes(net))


if __name__ == "__main__":
    main()
