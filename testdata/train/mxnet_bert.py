"""Trains a BERT-like encoder with MXNet Gluon: embeddings, self-attention, a masked language model that shares the word embedding, and a pooler."""
import math
import os

os.environ.setdefault("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0")
import mxnet  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402
from mxnet.gluon import nn  # noqa: E402

import mxnet_oracle  # noqa: E402
import oracle  # noqa: E402

WORDS, LENGTH, CLASSES = 3000, 64, 2


class Attention(gluon.HybridBlock):
    def __init__(self, width, heads, **kwargs):
        super().__init__(**kwargs)
        self.width, self.heads = width, heads
        with self.name_scope():
            self.query_key_value = nn.Dense(3 * width, flatten=False, in_units=width, prefix="qkv_")
            self.output = nn.Dense(width, flatten=False, in_units=width, prefix="out_")
            self.dropout = nn.Dropout(0.1)

    def hybrid_forward(self, F, x):
        parts = F.split(self.query_key_value(x), num_outputs=3, axis=-1)
        split = [F.reshape(F.transpose(F.reshape(part, (0, 0, self.heads, -1)), (0, 2, 1, 3)), (-3, 0, 0)) for part in parts]
        scores = F.batch_dot(split[0], split[1], transpose_b=True) / math.sqrt(self.width / self.heads)
        mixed = F.batch_dot(self.dropout(F.softmax(scores, axis=-1)), split[2])
        return self.output(F.reshape(F.transpose(F.reshape(mixed, (-4, -1, self.heads, 0, 0)), (0, 2, 1, 3)), (0, 0, -3)))


class Layer(gluon.HybridBlock):
    def __init__(self, width, heads, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.attention = Attention(width, heads, prefix="attention_")
            self.norm1 = nn.LayerNorm(in_channels=width, prefix="norm1_")
            self.wide = nn.Dense(4 * width, flatten=False, in_units=width, prefix="wide_")
            self.narrow = nn.Dense(width, flatten=False, in_units=4 * width, prefix="narrow_")
            self.norm2 = nn.LayerNorm(in_channels=width, prefix="norm2_")

    def hybrid_forward(self, F, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.narrow(F.LeakyReLU(self.wide(x), act_type="gelu")))


class Bert(gluon.HybridBlock):
    def __init__(self, width, heads, layers, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.words = nn.Embedding(WORDS, width, prefix="word_embed_")
            self.position = self.params.get("position_embed", shape=(1, LENGTH, width))
            self.norm = nn.LayerNorm(in_channels=width, prefix="embed_norm_")
            self.encoder = nn.HybridSequential(prefix="encoder_")
            with self.encoder.name_scope():
                for i in range(layers):
                    self.encoder.add(Layer(width, heads, prefix=f"layer{i}_"))
            self.decoder = nn.Dense(WORDS, flatten=False, in_units=width, params=self.words.params, prefix="word_embed_")
            self.pooler = nn.Dense(width, activation="tanh", flatten=False, in_units=width, prefix="pooler_")
            self.classifier = nn.Dense(CLASSES, in_units=width, prefix="classifier_")

    def hybrid_forward(self, F, tokens, position):
        x = self.encoder(self.norm(F.broadcast_add(self.words(tokens), position)))
        return self.decoder(x), self.classifier(self.pooler(F.squeeze(F.slice_axis(x, axis=1, begin=0, end=1), axis=1)))


def main():
    parser = mxnet_oracle.parser(__doc__)
    parser.add_argument("--width", type=oracle.positive, default=128)
    parser.add_argument("--layers", type=oracle.positive, default=2)
    options = parser.parse_args()
    contexts = mxnet_oracle.contexts(options)
    net = Bert(options.width, 4, options.layers, prefix="bert_")
    net.initialize(mxnet.init.Normal(0.02), ctx=contexts)
    mxnet_oracle.prepare(options, net)
    trainer = mxnet_oracle.trainer(options, net)
    tokens = [mxnet.nd.zeros((options.batch, LENGTH), ctx=ctx) for ctx in contexts]
    answers = [mxnet.nd.zeros((options.batch,), ctx=ctx) for ctx in contexts]
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(options.steps):
        oracle.step()
        losses = []
        with autograd.record():
            for t, a in zip(tokens, answers):
                words, sentence = net(t)
                losses.append(criterion(words, t).mean() + criterion(sentence, a).mean())
        for loss in losses:
            loss.backward()
        trainer.step(options.batch * len(contexts))
        for loss in losses:
            loss.wait_to_read()  # as a program does that prints it: MXNet's engine may be steps behind
    mxnet_oracle.finish(options, net, trainer, tokens, answers, losses)


if __name__ == "__main__":
    main()
