"""What programs in Python do beside training, one at a time:

    ordinary.py FRAMEWORK CASE...

The framework is torch or mxnet; without a case it prints their names. Several cases run one after the other, each in a child that is forked before it uses CUDA, and their statuses
are printed. Each case trains a little in the middle of what it does, and prints what it sees of that: with the library it
must print the same, raise the same and end the same. What differs from run to run without the library, too, is not printed. internal/e2e/ordinary_test.go says how interpreters are
started for them.
"""
import asyncio
import atexit
import contextlib
import contextvars
import copy
import ctypes
import faulthandler
import functools
import gc
import io
import logging
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
import weakref

CASES, TORCH_ONLY = {}, set()
LINGER = float(os.environ.get("ORDINARY_LINGER", "1"))


def case(function):
    CASES[function.__name__] = function
    return function


def torch_only(function):
    TORCH_ONLY.add(function.__name__)
    return case(function)


class Torch:
    def __init__(self):
        import torch
        self.torch = torch

    def model(self):
        nn = self.torch.nn
        self.torch.manual_seed(0)
        return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).cuda()

    def trainer(self, model):
        return self.torch.optim.Adam(model.parameters())

    def step(self, model, trainer):
        trainer.zero_grad()
        loss = model(self.torch.ones(4, 16, device="cuda")).sum()
        loss.backward()
        trainer.step()
        return loss

    def forward(self, model):
        """Without the engine for backward passes, which refuses to work once a thread has been in another interpreter."""
        with self.torch.no_grad():
            return model(self.torch.ones(4, 16, device="cuda")).sum()

    def parameters(self, model):
        return list(model.parameters())

    def exhaust(self):
        try:
            self.torch.empty(1 << 50, dtype=self.torch.uint8, device="cuda")
        except RuntimeError as error:
            return type(error).__name__


class MXNet:
    def __init__(self):
        import mxnet
        self.mx = mxnet

    def model(self):
        nn = self.mx.gluon.nn
        net = nn.HybridSequential()
        net.add(nn.Dense(32, in_units=16, activation="relu"), nn.Dense(8, in_units=32))
        net.initialize(ctx=self.mx.gpu(0))
        return net

    def trainer(self, model):
        return self.mx.gluon.Trainer(model.collect_params(), "adam")

    def step(self, model, trainer):
        with self.mx.autograd.record():
            loss = model(self.mx.nd.ones((4, 16), ctx=self.mx.gpu(0))).sum()
        loss.backward()
        trainer.step(4)
        return loss

    def forward(self, model):
        return model(self.mx.nd.ones((4, 16), ctx=self.mx.gpu(0))).sum()

    def parameters(self, model):
        return list(model.collect_params().values())

    def exhaust(self):
        held = []  # an array has fewer than 2**31 elements
        self.mx.nd.waitall()  # the engine computes later what was called before, and would find no memory for it
        try:
            while True:
                held.append(self.mx.nd.empty((1 << 10, 1 << 20), ctx=self.mx.gpu(0)))
        except self.mx.base.MXNetError as error:
            held.clear()
            self.mx.nd.waitall()  # the arrays are freed by another thread, and until then whatever is computed next may find no memory
            return type(error).__name__


def train(f, steps=4, model=None, trainer=None):
    model = model or f.model()
    trainer = trainer or f.trainer(model)
    for _ in range(steps):
        loss = f.step(model, trainer)
    return model, trainer, loss


def linger(seconds=1.2):
    """Whoever looks at a program from time to time does so meanwhile. Nobody does where ORDINARY_LINGER is 0."""
    until = time.monotonic() + seconds * LINGER
    while time.monotonic() < until:
        pass


@case
def plain(f):
    print(type(train(f)[2]).__name__, sorted(name for name in sys.modules if "memtrace" in name))


@case
def crash(f):
    """Under faulthandler, with the interpreter's own text about it."""
    faulthandler.enable()
    train(f)
    sys.stdout.flush()
    ctypes.string_at(8)


@case
def abort(f):
    faulthandler.enable(all_threads=False)
    train(f)
    os.abort()


@case
def dumped_later(f):
    faulthandler.dump_traceback_later(3600)
    train(f)
    faulthandler.cancel_dump_traceback_later()
    read, write = os.pipe()
    faulthandler.register(signal.SIGUSR1, file=write, all_threads=False)
    os.kill(os.getpid(), signal.SIGUSR1)
    print(os.read(read, 4096).decode().splitlines()[0][:20])


@case
def collector_off(f):
    gc.disable()
    train(f)
    linger()
    print(gc.isenabled(), len(gc.garbage), gc.callbacks)


@case
def collector_debugging(f):
    gc.set_debug(gc.DEBUG_SAVEALL)
    model, trainer, loss = train(f)
    linger()
    gc.collect()
    print(gc.get_debug(), sum("<memtrace>" in repr(getattr(thing, "__code__", "")) for thing in gc.garbage))


@case
def collector_frozen(f):
    gc.freeze()
    train(f)
    linger()
    gc.unfreeze()
    print(gc.isenabled(), gc.get_threshold())


@case
def collector_callbacks(f):
    """Nobody collects but who did without."""
    model, trainer, _ = train(f)
    gc.collect()
    linger()
    seen = []
    gc.callbacks.append(lambda phase, info: seen.append((phase, info["generation"])))
    gc.disable()
    train(f, 2, model, trainer)
    linger()
    print(seen)


@case
def objects(f):
    """Those of the program's classes: as many as it made."""
    class Mine:
        pass
    kept = [Mine() for _ in range(10)]
    model, _, _ = train(f)
    linger()
    gc.collect()
    print(len(kept), sum(type(thing) is Mine for thing in gc.get_objects()), sum(type(thing) is type(model) for thing in gc.get_objects()))


@case
def referrers(f):
    """Who holds a parameter is who did, and how often, but for the moment in which somebody looks at all of them. Weak references are nobody's but of modules, optimizers, trainers and what
    MXNet calls a parameter, which docs/names.md speaks of."""
    model, trainer, loss = train(f)
    linger()
    gc.collect()
    looks = []
    for _ in range(3):
        looks.append([(sys.getrefcount(p), len(gc.get_referrers(p))) for p in f.parameters(model)])
        time.sleep(0.1)
    print([min(counts) for counts in zip(*looks)])
    if isinstance(f, Torch):
        print([(weakref.getweakrefcount(p), sorted(vars(p))) for p in f.parameters(model)])
    print(sys.getrefcount(model), sys.getrefcount(trainer), sys.getrefcount(loss))


@case
def mortal(f):
    """Everything dies when it did."""
    died = []
    model, trainer, _ = train(f)
    linger()
    if isinstance(f, Torch):
        weakref.finalize(f.parameters(model)[0], died.append, "parameter")
    weakref.finalize(model, died.append, "model")
    weakref.finalize(trainer, died.append, "trainer")
    del trainer
    print(died)
    del model
    print(died)
    gc.collect()
    print(sorted(died))


@case
def profiling_signal(f):
    """A thousand a second."""
    came = []
    signal.signal(signal.SIGPROF, lambda *_: came.append(1))
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    train(f, 50)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(len(came) > 0, signal.getsignal(signal.SIGPROF) is not None)


@case
def alarms(f):
    """A handler's exception gets out, and its frames are the program's."""
    class Late(Exception):
        pass

    def late(*_):
        raise Late
    signal.signal(signal.SIGALRM, late)
    model, trainer, _ = train(f)
    caught = 0
    for _ in range(10):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:
            while True:
                f.parameters(model)
        except Late as error:
            caught += 1
            print([frame.name for frame in traceback.extract_tb(error.__traceback__) if "<memtrace>" in frame.filename])
    print(caught)


@case
def dispositions(f):
    train(f)
    linger()
    print([(number, str(signal.getsignal(number))[:40]) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGSEGV, signal.SIGURG, signal.SIGPROF)])
    print(signal.pthread_sigmask(signal.SIG_BLOCK, []))


@case
def interrupt(f):
    train(f)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(60)


@case
def gevent(f):
    import gevent
    order = []

    def work(number):
        model, trainer, _ = train(f, 1)
        for _ in range(3):
            order.append(number)
            gevent.sleep(0)
            train(f, 1, model, trainer)
    gevent.joinall([gevent.spawn(work, i) for i in range(3)])
    print(order)


@case
def greenlet(f):
    from greenlet import greenlet
    order = []

    def first():
        train(f, 1)
        order.append(1)
        second.switch()
        train(f, 1)
        order.append(3)

    def other():
        train(f, 1)
        order.append(2)
        main.switch()
    main, second = greenlet(first), greenlet(other)
    main.switch()
    print(order, main.dead, second.dead)


@case
def threads(f):
    results = queue.Queue()

    def work():
        train(f, 3)
        results.put((threading.current_thread().name, threading.active_count()))
    workers = [threading.Thread(target=work, name=f"worker {i}") for i in range(4)]
    for worker in workers:
        worker.start()
        worker.join()
    print(sorted(results.get() for _ in workers), threading.active_count(), [t.name for t in threading.enumerate()])


@case
def daemon_threads(f):
    """They run when the interpreter ends."""
    def spin():
        while True:
            time.sleep(0.001)
    train(f)
    for _ in range(3):
        threading.Thread(target=spin, daemon=True).start()
    print("main is over")


@case
def thread_exception(f):
    def work():
        train(f, 2)
        raise ValueError("in a thread")
    worker = threading.Thread(target=work, name="raising")
    worker.start()
    worker.join()


@case
def cprofile(f):
    import cProfile
    import pstats
    watched = cProfile.Profile()
    model, trainer, _ = train(f)
    watched.enable()
    train(f, 4, model, trainer)
    watched.disable()
    for (file, line, name), (calls, total, *_) in sorted(pstats.Stats(watched).stats.items()):
        print(os.path.basename(file), line, name.split(" at 0x")[0], calls, total)


@case
def profile_function(f):
    seen = {}

    def look(frame, event, argument):
        name = os.path.basename(frame.f_code.co_filename), frame.f_code.co_name, event, getattr(argument, "__name__", "") if event.startswith("c_") else ""
        seen[name] = seen.get(name, 0) + 1
    model, trainer, _ = train(f)
    sys.setprofile(look)
    train(f, 3, model, trainer)
    linger(0.6)
    sys.setprofile(None)
    for name, count in sorted(seen.items()):
        if name[1] != "linger" and name[3] != "monotonic":
            print(*name, count)


@case
def trace_function(f):
    """Functions that are entered and left, and their lines but those of PyTorch's loop over its hooks."""
    seen = {}

    def look(frame, event, argument):
        name = os.path.basename(frame.f_code.co_filename), frame.f_code.co_name, event
        if name not in (("optimizer.py", "wrapper", "line"), ("optimizer.py", "profile_hook_step", "line")) and name[1] != "linger":
            seen[name] = seen.get(name, 0) + 1
        return look
    model, trainer, _ = train(f)
    sys.settrace(look)
    train(f, 3, model, trainer)
    linger(0.6)
    sys.settrace(None)
    for name, count in sorted(seen.items()):
        print(*name, count)


def monitoring(f):
    events, seen = sys.monitoring.events, {}

    def look(code, *_):
        name = os.path.basename(code.co_filename), code.co_name
        seen[name] = seen.get(name, 0) + 1
    model, trainer, _ = train(f)
    sys.monitoring.use_tool_id(3, "the program's")
    sys.monitoring.register_callback(3, events.PY_START, look)
    sys.monitoring.set_events(3, events.PY_START)
    train(f, 3, model, trainer)
    sys.monitoring.set_events(3, 0)
    for name, count in sorted(seen.items()):
        print(*name, count)


if hasattr(sys, "monitoring"):  # from Python 3.12 on
    case(monitoring)


@case
def tracemalloc(f):
    """What the program's own lines hold."""
    import tracemalloc
    model, trainer, _ = train(f)
    tracemalloc.start(10)
    train(f, 4, model, trainer)
    linger()
    held = [bytearray(100_000) for _ in range(3)]
    found = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)]).statistics("lineno")
    print(len(held), [s.traceback[0].lineno for s in found if s.size >= 100_000], tracemalloc.get_traceback_limit())


@case
def audit(f):
    """Those that docs/names.md and docs/process-behaviour.md speak of are left out."""
    heard = set()
    known = {"compile", "exec", "gc.get_objects", "gc.get_referents", "gc.get_referrers", "sys._getframe", "sys._current_frames", "object.__getattr__", "object.__setattr__", "import", "open", "code.__new__"}
    sys.addaudithook(lambda event, arguments: heard.add(event) if event not in known else None)
    train(f)
    linger()
    print(sorted(event for event in heard if not event.startswith("ctypes")))


@case
def imports(f):
    before = set(sys.modules)
    train(f)
    linger()
    print(sorted(set(sys.modules) - before), sys.path == list(sys.path), sorted(vars(__builtins__))[-5:])


@case
def pickled(f):
    model, _, _ = train(f)
    if isinstance(f, Torch):
        out = io.BytesIO()
        f.torch.save(model.state_dict(), out)
        out.seek(0)
        dumped = pickle.dumps(model.cpu())  # addresses are in it, so that its length differs from run to run
        again = pickle.loads(dumped)
        print(b"memtrace" in dumped, sorted(f.torch.load(out)), sorted(vars(model)) == sorted(vars(again)), sorted(vars(again)))
    else:
        print(sorted(model.collect_params().keys()), len(pickle.dumps(f.parameters(model)[0].name)))


@case
def copied(f):
    model, trainer, _ = train(f)
    linger()
    if isinstance(f, Torch):
        again = copy.deepcopy(model)
        print(type(copy.deepcopy(trainer)).__name__, [tuple(p.shape) for p in f.parameters(again)])
        train(f, 2, again)
    else:
        print([p.shape for p in f.parameters(model)])


@case
def subinterpreter(f):
    """There and back in the middle of training."""
    model, _, _ = train(f)
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    other = interpreters.create()
    run = getattr(interpreters, "run_string", None) or interpreters.exec
    for _ in range(3):
        run(other, "import sys; sys.stdout.write('inside\\n'); sys.stdout.flush()")
        print(type(f.forward(model)).__name__, flush=True)
    interpreters.destroy(other)
    print("outside")


@case
def deep(f):
    model, trainer, _ = train(f)

    def down(left):
        return down(left - 1) if left else train(f, 1, model, trainer)
    sys.setrecursionlimit(5000)
    down(3000)
    sys.setrecursionlimit(1000)
    try:
        down(100000)
    except RecursionError as error:
        print(error)


@case
def quick_end(f):
    train(f)
    os._exit(7)


@case
def ended_by_exit(f):
    atexit.register(print, "first registered")
    train(f)
    atexit.register(print, "last registered")
    sys.exit(3)


@case
def last_words(f):
    train(f)
    raise KeyError("the program's last words")


@case
def excepthook(f):
    sys.excepthook = lambda kind, value, trace: print("hooked", kind.__name__, value, [frame.name for frame in traceback.extract_tb(trace)])
    sys.unraisablehook = lambda about: print("unraisable", about.exc_value)

    class Loud:
        def __del__(self):
            raise ValueError("in __del__")
    train(f)
    Loud()
    linger()
    raise RuntimeError("at the end")


@case
def async_debug(f):
    """Without the lines about slow callbacks."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)

    async def work(number):
        for _ in range(2):
            train(f, 1)
            await asyncio.sleep(0)
        return number

    async def main():
        return await asyncio.gather(*(work(i) for i in range(3)))
    print(asyncio.run(main(), debug=True))


@case
def contexts(f):
    variable = contextvars.ContextVar("variable", default=0)

    def work():
        variable.set(variable.get() + 1)
        train(f, 2)
        return variable.get()
    print([contextvars.copy_context().run(work) for _ in range(3)], variable.get())


@case
def strict_warnings(f):
    train(f, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(f)
        linger()
    print([str(w.message)[:80] for w in caught])


@case
def subprocesses(f):
    train(f)
    done = subprocess.run([sys.executable, "-c", "import os; print(os.environ.get('LD_LIBRARY_PATH', '') != '', 'child')"], capture_output=True, text=True)
    print(done.returncode, done.stdout, done.stderr)
    print(os.system("exit 3"), subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)


@case
def forked(f):
    train(f)
    sys.stdout.flush()
    child = os.fork()
    if not child:
        print("in the child", flush=True)
        os._exit(4)
    print(os.waitpid(child, 0)[1] >> 8)
    train(f, 1)


def square(x):
    return x * x


@case
def pools(f):
    import concurrent.futures
    import multiprocessing
    train(f, 2)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        print([type(r[2]).__name__ for r in pool.map(lambda _: train(f, 2), range(3))])
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(square, range(5)))


@case
def exhausted(f):
    train(f)
    print([f.exhaust() for _ in range(3)])
    linger()
    train(f)


@case
def descriptors(f):
    train(f)
    before = sorted(os.listdir("/proc/self/fd"))
    train(f)
    linger()
    print(len(before) == len(os.listdir("/proc/self/fd")), os.readlink("/proc/self/fd/0") != "")


@case
def wrapped(f):
    """Functions of the program's stand where the framework's did."""
    @functools.wraps(f.step)
    def step(*arguments):
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: None)
            return type(f).step(f, *arguments)
    f.step = step
    train(f)
    print(step.__name__)


@torch_only
def statistics(f):
    train(f)
    linger()
    stats = f.torch.cuda.memory_stats()
    print({key: value for key, value in sorted(stats.items()) if "all" in key})
    print(f.torch.cuda.memory_summary().count("\n"), len(f.torch.cuda.memory_snapshot()))


@torch_only
def history(f):
    f.torch.cuda.memory._record_memory_history()
    train(f)
    linger()
    entries = f.torch.cuda.memory._snapshot()["device_traces"][0]
    print(len(entries), [e["action"] for e in entries][:20], any("<memtrace>" in frame["filename"] for e in entries for frame in e["frames"]))


@torch_only
def compiled(f):
    torch = f.torch
    model = torch.compile(f.model(), backend="aot_eager")
    train(f, 3, model)
    print({kind: dict(values) for kind, values in torch._dynamo.utils.counters.items() if kind in ("stats", "frames", "graph_break", "unimplemented")})


@torch_only
def scripted(f):
    torch = f.torch
    model = torch.jit.script(f.model())
    train(f, 3, model)
    traced = torch.jit.trace(f.model(), torch.ones(4, 16, device="cuda"))
    linger()
    print(model.graph.__str__().count("\n"), traced.code.count("\n"))


def loaded(f, method):
    torch = f.torch
    data = torch.utils.data.TensorDataset(torch.arange(64.0).reshape(16, 4))
    model, trainer, _ = train(f, 2)
    for _ in range(2):
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=method, pin_memory=True)
        print([float(batch.sum()) for batch, in loader])
        train(f, 2, model, trainer)


for method in "fork", "spawn", "forkserver":
    torch_only(functools.update_wrapper(functools.partial(loaded, method=method), type("", (), {"__name__": "loader_" + method})(), ("__name__",), ()))


@torch_only
def hooks(f):
    """One more among those that are called after every optimizer's step, which docs/process-behaviour.md speaks of; none elsewhere."""
    import torch.optim.optimizer as place
    model, trainer, _ = train(f)
    linger()
    print(len(place._global_optimizer_pre_hooks), len(trainer._optimizer_step_post_hooks), [len(m._forward_hooks) + len(m._backward_hooks) for m in model.modules()],
          [p._backward_hooks for p in model.parameters()])


def main():
    if len(sys.argv) < 3:
        print(*(name for name in CASES if sys.argv[1] == "torch" or name not in TORCH_ONLY))
        return
    framework, names = {"torch": Torch, "mxnet": MXNet}[sys.argv[1]](), sys.argv[2:]
    if len(names) == 1:
        CASES[names[0]](framework)
        return
    if sys.argv[1] == "torch":
        import torch._dynamo  # noqa: F401  the first optimizer does, which takes a second in each child
    for name in names:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            CASES[name](framework)
            return
        print(name, "ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
