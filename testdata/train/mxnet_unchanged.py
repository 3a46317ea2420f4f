"""Prints what a program can see of its own MXNet, errors with their lines among it. Run with and without names, both must print the same."""
import gc
import inspect
import pickle
import sys
import threading
import traceback
import warnings

import mxnet
from mxnet import autograd, gluon
from mxnet.gluon.trainer import Trainer
from mxnet.module import Module
from mxnet.optimizer.optimizer import Updater

import mxnet_oracle


class Odd(gluon.nn.Dense):
    """A layer that has no attribute but its own, and says so loudly once it is `odd`."""
    odd = False

    def __getattr__(self, name):
        raise (RuntimeError if Odd.odd else AttributeError)(f"no {name} here")


class Proxy:
    """Says that it is something else."""
    @property
    def __class__(self):
        raise RuntimeError("nobody may ask for my class")

    def __del__(self):
        raise RuntimeError("not quietly")


def train(net, steps, optimizer="adam", stale=False):
    gpu = mxnet.gpu(0)
    trainer = gluon.Trainer(net.collect_params(), optimizer)
    for _ in range(steps):
        with autograd.record():
            loss = net(mxnet.nd.ones((4, 16), ctx=gpu)).sum()
        if not stale:
            loss.backward()
        trainer.step(4)
    return trainer


def network(kind=gluon.nn.Dense):
    net = gluon.nn.HybridSequential()
    net.add(kind(32, in_units=16), gluon.nn.BatchNorm(in_channels=32), gluon.nn.Dense(8, in_units=32))
    net.initialize(ctx=mxnet.gpu(0))
    return net


def show(method):
    print(method.__qualname__, method.__module__, type(method).__name__, inspect.signature(method), len(method.__doc__ or ""), sorted(vars(method)))
    code = method.__code__
    print(inspect.getsourcefile(method).rsplit("/", 1)[-1], len(inspect.getsource(method)), code.co_firstlineno, code.co_name, code.co_varnames, code.co_names, code.co_flags)


def failing(what, *arguments, **options):
    try:
        what(*arguments, **options)
    except Exception:
        traceback.print_exc()


def main():
    proxies = [Proxy() for _ in range(3)]
    first = network()
    train(first, 3)
    mxnet.nd.waitall()
    mxnet_oracle.wait_for_names()
    train(first, 5)
    for method in (Trainer.step, Trainer.update, Trainer._update, Module.update, Updater.__call__):
        show(method)
    print(sorted(name for name in vars(Trainer)), sorted(vars(sys.modules["mxnet.gluon.trainer"])))
    failing(train, first, 1, stale=True)
    failing(train, network(), 1, optimizer="no such thing")
    odd = network(Odd)
    Odd.odd = True
    failing(train, odd, 3)
    Odd.odd = False
    failing(Updater.__call__, object(), 1, 2, 3)
    failing(Module.update, None)
    failing(Trainer._update, 5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        half = network()
        half.cast("float16")
        failing(train, half, 1)
    print([(str(w.message)[:40], w.filename.rsplit("/", 1)[-1], w.lineno) for w in caught])
    trainer = train(first, 70)
    first.collect_params().reset_ctx(mxnet.gpu(0))
    train(first, 2)
    del trainer, first
    gc.collect()
    again = train(network(), 2)
    print(len(pickle.dumps(again._updaters[0].get_states(dump_optimizer=True))) > 0, len(again._updaters[0].states))
    updater, weight = mxnet.optimizer.get_updater(mxnet.optimizer.create("sgd", momentum=0.9)), mxnet.nd.ones((8, 8), ctx=mxnet.gpu(0))
    for _ in range(4):
        updater(0, mxnet.nd.ones((8, 8), ctx=mxnet.gpu(0)), weight)
    failing(updater, 1, None, None)
    events = []
    sys.setprofile(lambda frame, event, _: events.append(frame.f_code.co_name) if event == "call" and frame.f_code.co_filename.endswith("trainer.py") else None)
    train(network(), 1)
    sys.setprofile(None)
    print(events)
    frames, net = set(), network()
    tracer = lambda frame, *_: frames.add((frame.f_code.co_filename.rsplit("/", 1)[-1], frame.f_code.co_name))  # noqa: E731
    sys.settrace(tracer)
    train(net, 3)
    sys.settrace(None)
    sys.setprofile(tracer)
    train(net, 3)
    del net
    sys.setprofile(None)
    print(sorted(frames))
    threads = [threading.Thread(target=train, args=(network(), 5)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setrecursionlimit(120)
    failing(train, network(), 2)
    del proxies[:2]
    mxnet.nd.waitall()
    print("end", sys.getrecursionlimit(), gc.garbage)


if __name__ == "__main__":
    main()
