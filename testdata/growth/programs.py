"""Programs that leak, and programs that look as if they did.

    programs.py NAME...      runs these, each in a forked process of its own
    programs.py --list       prints the names of each kind

GROWTH_TIMES makes them so many times as long, GROWTH_SEED gives other random numbers.

A leaking program has one line marked `# leak`: the one whose memory stays. Of a slow leak it is so little that it is
not called growth, but what "No growth of more than" is followed by. Of each program a line says its name, its
process and how many bytes it leaked by its own count: of what `stays` was handed, or what `since` measured.
"""
import collections
import contextlib
import copy
import functools
import gc
import os
import random
import sys
import threading

import torch
from torch import nn
from torch.nn import functional

LEAKS, SLOW, HEALTHY = {}, {}, {}
TIMES, SEED = int(os.environ.get("GROWTH_TIMES", "1")), int(os.environ.get("GROWTH_SEED", "1"))
leaked = 0
torch.backends.cudnn.enabled = False  # it finds no kernels on the null GPU


def leak(function):
    LEAKS[function.__name__] = function


def slow_leak(function):
    SLOW[function.__name__] = function


def healthy(function):
    HEALTHY[function.__name__] = function


def times(count):
    return TIMES * count


def stays(tensor):
    """Counts a tensor that stays."""
    global leaked
    leaked += tensor.untyped_storage().nbytes()
    return tensor


@contextlib.contextmanager
def since():
    """Counts what is more at the end than at the beginning, which has the workspaces of cuBLAS and cuBLASLt already."""
    global leaked
    ones = torch.ones(2, 2, device="cuda", requires_grad=True)
    functional.linear(ones @ ones, ones, ones[0]).sum().backward()
    del ones
    before = torch.cuda.memory_allocated()
    yield
    leaked += torch.cuda.memory_allocated() - before


def model(width=256, depth=3):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(width, 10)).cuda()


def batch(size=64, width=256):
    return torch.randn(size, width, device="cuda")


def train(net, steps, optimizer=None, x=batch):
    optimizer = optimizer or torch.optim.Adam(net.parameters())
    for _ in range(steps):
        net(x()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@torch.no_grad()
def serve(net, x):
    return net(x)


class Block(nn.Module):
    """A building block whose lines are everybody's."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm(x)
        y = functional.gelu(self.up(y))
        return x + self.down(y)


def blocks(width=64, depth=4):
    return nn.Sequential(*[Block(width) for _ in range(depth)]).cuda()


# Leaks


@leak
def outputs_in_a_list():
    net, kept = model(), []
    for _ in range(times(400)):
        kept.append(stays(serve(net, batch()).repeat(1, 2)))  # leak


@leak
def outputs_before_a_test():
    net, kept = model(), []
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(80)):
        train(net, 1, optimizer)
        kept.append(stays(serve(net, batch()).repeat(1, 8)))  # leak
    for _ in range(times(300)):
        serve(net, batch())
    return kept


@leak
def cache_without_a_limit():
    net, cache = model(), {}
    for request in range(times(500)):
        y = serve(net, batch())
        cache[request] = stays(y.repeat(1, 4))  # leak
    return cache


@leak
def kv_cache_never_reset():
    net, kv = model(), torch.empty(0, 1024, device="cuda")
    for _ in range(times(500)):
        x = batch(4)
        serve(net, batch())
        kv = torch.cat([kv, x.view(1, 1024)])  # leak
    stays(kv)


@leak
def loss_that_keeps_its_graph():
    net, total = model(64, 2), 0
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with since():
        for _ in range(times(300)):
            loss = net(batch(256, 64)).mean()  # leak
            total = total + loss
            loss.backward(retain_graph=True)
            optimizer.step()
            optimizer.zero_grad()


@leak
def hook_that_collects():
    net, seen = model(), []
    net[0].register_forward_hook(lambda module, args, out: seen.append(stays(out[:8].clone())))  # leak
    for _ in range(times(400)):
        serve(net, batch())


@leak
def slow():
    net, kept = model(), []
    for step in range(times(2000)):
        serve(net, batch())
        if step % 20 == 19:
            kept.append(stays(torch.zeros(8192, device="cuda")))  # leak


@leak
def from_the_middle_on():
    net, kept = model(), []
    for step in range(times(900)):
        serve(net, batch())
        if step > times(300):
            kept.append(stays(torch.zeros(4096, device="cuda")))  # leak


@leak
def in_a_thread():
    net, kept = model(), []

    def worker():
        for _ in range(times(200)):
            serve(net, batch())
            kept.append(stays(torch.zeros(8192, device="cuda")))  # leak

    threads = [threading.Thread(target=worker) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@leak
def replay_buffer_without_a_limit():
    net, buffer = model(), []
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(300)):
        state = batch(8)
        buffer.append(stays(state.clone()))  # leak
        train(net, 1, optimizer, lambda: torch.cat(random.sample(buffer, min(4, len(buffer)))))


@leak
def metrics_on_the_device():
    net, history = model(), []
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(300)):
        loss = net(batch()).pow(2)
        loss.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(stays(loss.detach().repeat(1, 4)))  # leak


@leak
def outputs_by_epochs():
    """As a trainer's module that keeps what validation gave: a step each epoch, beside a small list."""
    net, outputs, losses = model(), [], []
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(5):
        train(net, times(8), optimizer)
        for _ in range(3):
            outputs.append(stays(torch.zeros(10 << 18, device="cuda")))  # leak
            losses.append(torch.zeros(1, device="cuda"))


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.outputs = blocks(), []

    def training_step(self, x):
        return self.net(x).mean()

    def validation_step(self, x):
        self.outputs.append(self.net(x))  # leak: leaf_of_two_callers


@leak
def leaf_of_two_callers():
    """Training uses the lines that allocate as well: the line that tells them apart is the one that calls."""
    module = Keeping()
    optimizer = torch.optim.Adam(module.parameters())
    for _ in range(6):
        for _ in range(times(6)):
            module.training_step(batch(64, 64)).backward()
            optimizer.step()
            optimizer.zero_grad()
        with since():
            for _ in range(times(3)):
                module.validation_step(batch(64, 64))


@leak
def losses_with_their_graphs():
    net, losses = blocks(), []
    with since():
        for _ in range(times(60)):
            losses.append(net(batch(64, 64)).mean())  # leak


@leak
def closures_that_hold_batches():
    net, later = model(), []
    for _ in range(times(300)):
        x = stays(torch.randn(32, 256, device="cuda"))  # leak
        serve(net, x)
        later.append(lambda x=x: x.sum())


@leak
def tracebacks_kept():
    net, failed = model(), []

    def attempt():
        x = stays(torch.randn(32, 256, device="cuda"))  # leak
        serve(net, x)
        raise ValueError

    for _ in range(times(200)):
        try:
            attempt()
        except ValueError as error:
            failed.append(error)


@leak
def requests_that_stay_registered():
    net, state = model(), {}
    for request in range(times(400)):
        x = batch(random.randint(8, 64))
        state[f"request-{request}"] = {"hidden": stays(serve(net, x).repeat(1, 3)), "text": "…"}  # leak
        if request > 1 and random.random() < 0.3:
            state[f"request-{request - 1}"]["text"] = ""


@leak
def parameter_groups_added():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(times(100)):
        prompt = nn.Parameter(stays(torch.zeros(32, 256, device="cuda")))  # leak
        optimizer.add_param_group({"params": [prompt]})
        net(batch(32) + prompt.detach()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@functools.lru_cache(maxsize=None)
def positions(length):
    return stays(torch.arange(length * 64, device="cuda").float())  # leak: cache_by_length


@leak
def cache_by_length():
    net = model()
    for length in random.sample(range(1, times(400) + 1), times(400)):
        positions(length)
        serve(net, batch(length % 64 + 1))


class Registry:
    entries = []


@leak
def registry_that_grows():
    net = model()
    for _ in range(times(200)):
        Registry.entries.append(stays(copy.deepcopy(net[0].weight.detach())))  # leak
        serve(net, batch())


@leak
def pinned_batches():
    net, queue = model(), []
    for _ in range(times(200)):
        host = torch.empty(1 << 17, dtype=torch.uint8, pin_memory=True)  # leak
        queue.append(stays(host))
        serve(net, host[:65536].cuda(non_blocking=True).view(torch.float32).view(64, 256))


@leak
def functional_code():
    weights, kept = [torch.randn(256, 256, device="cuda") for _ in range(4)], []
    for _ in range(times(300)):
        x = batch()
        for weight in weights:
            x = torch.relu(x @ weight)
        kept.append(stays(x[:16].clone()))  # leak


@leak
def generations_whose_caches_stay():
    net, sessions = model(), {}
    for session in range(times(12)):
        kv = []
        for _ in range(40):
            serve(net, batch())
            kv.append(stays(batch(8)))  # leak
        sessions[session] = kv


@leak
def graph_through_a_running_state():
    """Truncated backpropagation that forgot to detach."""
    cell, state = nn.Linear(256, 256).cuda(), torch.zeros(64, 256, device="cuda")
    with since():
        for _ in range(times(300)):
            state = torch.tanh(cell(state + batch()))  # leak
            serve(cell, batch())


@leak
def below_a_large_model():
    """Grows by less than the model's share of noise would hide, yet by more than one part in 200 of the peak."""
    net, kept = model(1024, 6), []
    for _ in range(times(300)):
        kept.append(stays(serve(net, batch(8, 1024)).repeat(1, 32)))  # leak


@leak
def gradients_of_frozen_copies():
    net, snapshots = model(), []
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(times(160)):
        train(net, 1, optimizer)
        if step % 4 == 3:
            snapshots.append({k: stays(v.clone()) for k, v in net.state_dict().items()})  # leak


@leak
def models_in_a_list():
    net, saved = blocks(), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(8):
        train(net, times(10), optimizer, lambda: batch(64, 64))
        with since():
            saved.append(copy.deepcopy(net))  # leak


@leak
def hooks_added():
    net = blocks()
    for _ in range(times(100)):
        kept = stays(torch.randn(64, 256, device="cuda"))  # leak
        net[0].register_forward_hook(lambda module, args, out, kept=kept: None)
        serve(net, batch(64, 64))


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.seen = blocks(), {}

    def forward(self, x, key):
        y = self.net(x)
        self.seen[key] = stays(y.detach().clone())  # leak: cache_in_forward
        return y


@leak
def cache_in_forward():
    net = Remembering()
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(times(150)):
        net(batch(64, 64), step).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@leak
def sometimes():
    net, kept = blocks(), []
    for _ in range(times(400)):
        y = serve(net, batch(random.randint(8, 64), 64))
        if random.random() < 0.5:
            kept.append(stays(y.repeat(1, random.randint(1, 4))))  # leak


@leak
def exceptions_with_activations():
    """Each exception keeps its frame, and so the graph of what failed."""
    net, failed = blocks(), []

    def attempt(x):
        y = net(x)  # leak
        raise RuntimeError(y.shape)

    with since():
        for _ in range(times(100)):
            try:
                attempt(batch(64, 64))
            except RuntimeError as error:
                failed.append(error)


class Trainer:
    def __init__(self):
        self.net, self.history = blocks(), []
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def evaluate(self):
        for _ in range(times(4)):
            self.history.append(self.net(batch(64, 64)))  # leak: losses_of_a_trainer

    def fit(self):
        for _ in range(6):
            train(self.net, times(12), self.optimizer, lambda: batch(64, 64))
            with since():
                self.evaluate()


@leak
def losses_of_a_trainer():
    Trainer().fit()


@leak
def few_iterations():
    net, kept = blocks(), []
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(8)):
        train(net, 1, optimizer, lambda: batch(64, 64))
        kept.append(stays(torch.zeros(1 << 18, device="cuda")))  # leak


@leak
def history_by_concatenation():
    net, history = blocks(), torch.empty(0, 64 * 64, device="cuda")
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(120)):
        y = net(batch(64, 64))
        y.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        history = torch.cat([history, y.detach().view(1, -1)])  # leak
    stays(history)


@leak
def optimizers_of_each_epoch():
    """Each has its state, made by its first step."""
    net, old = blocks(), []
    for _ in range(8):
        optimizer = torch.optim.Adam(net.parameters())
        with since():
            train(net, 1, optimizer, lambda: batch(64, 64))  # leak
        train(net, times(9), optimizer, lambda: batch(64, 64))
        old.append(optimizer)


# Healthy


@healthy
def plain_training():
    train(model(), times(200))


@healthy
def optimizer_made_late():
    net = model()
    for _ in range(times(60)):
        serve(net, batch())
    train(net, times(150))


@healthy
def cache_that_fills_and_stops():
    net, cache = model(), {}
    for request in range(times(900)):
        y = serve(net, batch())
        if request % 200 not in cache:
            cache[request % 200] = y.clone()


@healthy
def cache_with_eviction():
    net, cache = model(), collections.OrderedDict()
    for request in range(times(900)):
        cache[request] = serve(net, batch(random.randint(1, 128))).clone()
        if len(cache) > 64:
            cache.popitem(last=False)


@healthy
def growing_sequences():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(times(300)):
        train(net, 1, optimizer, lambda step=step: batch(16 + step))


@healthy
def progressive_resizing():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for size in (16, 24, 32, 48):
        train(net, times(60), optimizer, lambda size=size: torch.randn(4, 3, size, size, device="cuda"))


@healthy
def replay_buffer_with_a_limit():
    net, buffer = model(), collections.deque(maxlen=100)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(400)):
        buffer.append(batch(8))
        train(net, 1, optimizer, lambda: torch.cat(random.sample(list(buffer), min(4, len(buffer)))))


@healthy
def kv_cache_per_request():
    net = model()
    for _ in range(12):
        kv = torch.empty(0, 256, device="cuda")
        for _ in range(times(60)):
            serve(net, batch())
            kv = torch.cat([kv, batch(1)])


@healthy
def kv_cache_per_long_request():
    net = model()
    for _ in range(3):
        kv = torch.empty(0, 256, device="cuda")
        for _ in range(times(250)):
            serve(net, batch())
            kv = torch.cat([kv, batch(1)])


@healthy
def batches_of_any_size():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(300)):
        train(net, 1, optimizer, lambda: batch(random.randint(1, 256)))


@healthy
def evaluation_now_and_then():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(8):
        train(net, times(30), optimizer)
        predictions = [serve(net, batch()) for _ in range(30)]
        torch.cat(predictions).mean()


@healthy
def accumulated_gradients():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(times(300)):
        net(batch()).sum().backward()
        if step % 8 == 7:
            optimizer.step()
            optimizer.zero_grad()


@healthy
def averaged_model_from_the_middle_on():
    net, average = model(), None
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(times(200)):
        train(net, 1, optimizer)
        if step == times(100):
            average = torch.optim.swa_utils.AveragedModel(net)
        elif average:
            average.update_parameters(net)


@healthy
def requests_of_any_length():
    net = model()
    for _ in range(times(800)):
        serve(net, batch(random.randint(1, 300)))


@healthy
def weights_loaded_and_nothing_else():
    return [{f"layer.{i}": torch.randn(256, 256, device="cuda").half().float()} for i in range(600)]


@healthy
def weights_loaded_then_served():
    weights = [torch.randn(256, 256, device="cuda").half().float() for _ in range(400)]
    for _ in range(times(40)):
        x = batch()
        for weight in weights[:8]:
            x = x @ weight


@healthy
def cache_emptied():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(20):
        train(net, 10, optimizer)
        torch.cuda.empty_cache()


@healthy
def collected_and_cleared():
    net, kept = model(), []
    for step in range(times(1000)):
        kept.append(serve(net, batch()).clone())
        if step % 150 == 149:
            kept.clear()


@healthy
def threads_with_temporaries():
    net = model()
    threads = [threading.Thread(target=lambda: [serve(net, batch(random.randint(1, 64))) for _ in range(times(200))]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@healthy
def generator_and_critic():
    one, two = model(), model()
    optimizers = [torch.optim.Adam(net.parameters()) for net in (one, two)]
    for _ in range(times(100)):
        train(one, 2, optimizers[0])
        train(two, 1, optimizers[1])


@healthy
def pass_that_never_ends():
    """One forward pass, all of whose activations are still needed."""
    nn.Sequential(*[nn.Linear(64, 64).cuda() for _ in range(400)])(torch.randn(64, 64, device="cuda", requires_grad=True))


def trains(optimizer, schedule=None, steps=120):
    net = model()
    optimizer = optimizer(net.parameters())
    scheduler = schedule and schedule(optimizer)
    for _ in range(times(steps)):
        train(net, 1, optimizer)
        if scheduler:
            scheduler.step()


@healthy
def momentum_and_cosine():
    trains(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 50))


@healthy
def amsgrad_and_warmup():
    trains(lambda p: torch.optim.AdamW(p, amsgrad=True), lambda o: torch.optim.lr_scheduler.LinearLR(o, total_iters=60))


@healthy
def adagrad_and_rmsprop():
    trains(torch.optim.Adagrad, steps=60)
    trains(torch.optim.RMSprop, steps=60)


@healthy
def unfused_adam():
    trains(lambda p: torch.optim.Adam(p, foreach=False))


@healthy
def moving_average_from_the_beginning():
    net = model()
    average = copy.deepcopy(net)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(150)):
        train(net, 1, optimizer)
        with torch.no_grad():
            for a, p in zip(average.parameters(), net.parameters()):
                a.lerp_(p, 0.01)


@healthy
def best_weights_kept():
    net, best = model(), None
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(12):
        train(net, times(12), optimizer)
        best = {k: v.clone() for k, v in net.state_dict().items()}
    net.load_state_dict(best)


@healthy
def adversarial_training():
    generator, critic = model(), model(10, 2)
    ours, theirs = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(times(80)):
        for _ in range(3):
            critic(generator(batch()).detach()).mean().backward()
            theirs.step()
            theirs.zero_grad()
        critic(generator(batch())).mean().backward()
        ours.step()
        ours.zero_grad()


class OwnAdam:
    def __init__(self, parameters):
        self.parameters, self.state = list(parameters), {}

    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            m, v = self.state.setdefault(p, (torch.zeros_like(p), torch.zeros_like(p)))
            m = 0.9 * m + 0.1 * p.grad
            v = 0.99 * v + 0.01 * p.grad ** 2
            p -= 1e-3 * m / (v.sqrt() + 1e-8)
            self.state[p] = m, v


def own_steps(steps):
    net = blocks(64, 24)
    optimizer = OwnAdam(net.parameters())
    for _ in range(steps):
        net.zero_grad()
        net(batch(64, 64)).sum().backward()
        optimizer.step()


@healthy
def one_step_of_an_own_optimizer():
    own_steps(1)


@healthy
def two_steps_of_an_own_optimizer():
    own_steps(2)


@healthy
def many_steps_of_an_own_optimizer():
    own_steps(times(12))


@healthy
def one_training_step():
    net = blocks(64, 24)
    optimizer = torch.optim.AdamW(net.parameters())
    net(batch(64, 64)).sum().backward()
    optimizer.step()


@healthy
def one_pass_under_autocast():
    net = blocks(128, 40)
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        net(batch(64, 128))


@healthy
def training_under_autocast():
    net = blocks(64, 6)
    optimizer = torch.optim.AdamW(net.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(times(30)):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = net(batch(64, 64)).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def generate(net, tokens, layers=4):
    """One answer, token by token; what it remembers is forgotten with it."""
    cache = [torch.empty(0, 256, device="cuda") for _ in range(layers)]
    x = batch(1)
    for _ in range(tokens):
        for i in range(layers):
            cache[i] = torch.cat([cache[i], x])
        x = serve(net, x).repeat(1, 26)[:, :256]
    return x.sum()


@healthy
def one_generation():
    net = model()
    generate(net, times(400))


@healthy
def generations_of_many_lengths():
    net = model()
    for _ in range(times(10)):
        generate(net, random.randint(10, 80))


@healthy
def curriculum_in_stages():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for length in (16, 32, 64, 128, 256):
        for _ in range(times(30)):
            x = batch(length)
            loss = net(x).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


@healthy
def curriculum_step_by_step():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(times(150)):
        x = batch(16 + 4 * step)
        out = net(x)
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@healthy
def least_recently_used_full_late():
    net, cache = model(), collections.OrderedDict()
    for request in range(times(1000)):
        cache[request] = serve(net, batch()).repeat(1, 2)
        if len(cache) > times(700):
            cache.popitem(last=False)


@healthy
def cache_full_at_seventy_percent():
    net, cache = model(), {}
    for request in range(times(1000)):
        if request < times(700):
            cache[request] = batch(8)
        serve(net, batch())


@healthy
def replay_buffer_on_the_device():
    net, buffer = model(), torch.zeros(1000, 256, device="cuda")
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(times(200)):
        buffer[step % 1000] = batch(1)[0]
        train(net, 1, optimizer, lambda: buffer[torch.randint(0, 1000, (32,), device="cuda")])


@healthy
def prefetched_batches():
    net, queue = model(), collections.deque()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(200)):
        while len(queue) < 4:
            queue.append(torch.randn(64, 256).pin_memory().cuda(non_blocking=True))
        train(net, 1, optimizer, queue.popleft)


@healthy
def pinned_data_set():
    """All data is pinned first, then trained with."""
    net, data = model(), [torch.randn(64, 256).pin_memory() for _ in range(300)]
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(times(300)):
        train(net, 1, optimizer, lambda step=step: data[step % 300].cuda(non_blocking=True))


@healthy
def staging_buffers():
    net = model()
    staging = [torch.empty(64, 256, pin_memory=True) for _ in range(3)]
    for step in range(times(400)):
        serve(net, staging[step % 3].cuda(non_blocking=True))


@healthy
def captured_graphs():
    net, graphs = model(), {}
    with torch.no_grad():
        for size in (1, 2, 4, 8, 16, 32, 64):
            x, graph = batch(size), torch.cuda.CUDAGraph()
            net(x)
            with torch.cuda.graph(graph):
                y = net(x)
            graphs[size] = graph, x, y
    for _ in range(times(300)):
        graphs[random.choice(list(graphs))][0].replay()
        batch(4).sum()


@healthy
def server_with_queues():
    net, waiting = model(), collections.deque()
    for _ in range(times(300)):
        for _ in range(random.randint(0, 4)):
            waiting.append(batch(random.randint(1, 64)))
        while waiting and len(waiting) > random.randint(0, 6):
            serve(net, waiting.popleft())


@healthy
def buckets_of_gradients():
    net = blocks(64, 6)
    optimizer = torch.optim.AdamW(net.parameters())
    buckets = None
    for _ in range(times(40)):
        net(batch(64, 64)).sum().backward()
        if buckets is None:
            buckets = [torch.zeros_like(p).flatten() for p in net.parameters()]
        for bucket, p in zip(buckets, net.parameters()):
            bucket.copy_(p.grad.flatten())
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)


@healthy
def evaluation_lists_by_epochs():
    net = blocks()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(6):
        train(net, times(10), optimizer, lambda: batch(64, 64))
        outputs = [serve(net, batch(64, 64)) for _ in range(times(10))]
        torch.stack(outputs).mean()
        outputs.clear()


@healthy
def fine_tuned_in_two_phases():
    net = model(256, 6)
    for p in net[:6].parameters():
        p.requires_grad_(False)
    train(net, times(60), torch.optim.Adam(net[6:].parameters()))
    for p in net.parameters():
        p.requires_grad_(True)
    train(net, times(100))


@healthy
def experts_made_when_needed():
    net, experts = model(), {}
    for _ in range(times(400)):
        which = random.randint(0, 15)
        if which not in experts:
            experts[which] = model(256, 1)
        serve(experts[which], batch())
        serve(net, batch())


@healthy
def losses_of_little_bytes():
    """Half a kilobyte a step: nobody has to be alarmed."""
    net, losses = model(512, 6), []
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(150)):
        loss = net(batch(64, 512)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())


@healthy
def functional_passes():
    weights = [torch.randn(128, 128, device="cuda", requires_grad=True) for _ in range(24)]
    for _ in range(2):
        x = batch(64, 128)
        for weight in weights:
            x = torch.relu(x @ weight)
        x.sum().backward()
        for weight in weights:
            weight.grad = None


@healthy
def replay_buffer_full_at_sixty_percent():
    net, buffer = blocks(), collections.deque(maxlen=times(120))
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(200)):
        buffer.append(batch(16, 64))
        train(net, 1, optimizer, lambda: random.choice(buffer).repeat(2, 1))


@healthy
def bounded_cache_of_any_sizes():
    net = model()

    @functools.lru_cache(maxsize=64)
    def encoding(length):
        return torch.randn(length, 256, device="cuda")

    for _ in range(times(300)):
        serve(net, encoding(random.randint(1, 200)))


@healthy
def two_passes_under_autocast():
    net = blocks(128, 30)
    for _ in range(2):
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            net(batch(64, 128))


@healthy
def one_long_recurrent_pass():
    cell, h, c = nn.LSTMCell(64, 64).cuda(), torch.zeros(16, 64, device="cuda"), torch.zeros(16, 64, device="cuda")
    for _ in range(times(300)):
        h, c = cell(batch(16, 64), (h, c))
    h.sum().backward()


@healthy
def three_steps():
    net = blocks(64, 24)
    train(net, 3, torch.optim.AdamW(net.parameters()), lambda: batch(64, 64))


@healthy
def one_step_of_many_batches():
    net = blocks(64, 8)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(times(40)):
        net(batch(64, 64)).sum().backward()
    optimizer.step()


@healthy
def evaluated_once_at_the_end():
    net = blocks(64, 8)
    train(net, times(100), torch.optim.AdamW(net.parameters()), lambda: batch(64, 64))
    outputs = [serve(net, batch(64, 64)) for _ in range(times(100))]
    torch.cat(outputs).mean()


@healthy
def layers_loaded_when_needed():
    layers, x = [Block(128) for _ in range(30)], batch(64, 128)
    with torch.no_grad():
        for layer in layers:
            x = layer.cuda()(x)
        for _ in range(times(50)):
            y = batch(64, 128)
            for layer in layers:
                y = layer(y)


@healthy
def weights_quantized_first():
    net, quantized = blocks(128, 40), []
    for p in net.parameters():
        q = (p.detach() * 127).round().to(torch.int8).float()
        quantized.append((q / q.abs().max()).half())
    for _ in range(5):
        serve(net, batch(16, 128))


@healthy
def features_computed_once():
    net = blocks()
    features = [serve(net, x) for x in [batch(32, 64) for _ in range(times(200))]]
    head = nn.Linear(64, 8).cuda()
    optimizer = torch.optim.Adam(head.parameters())
    for _ in range(6):
        for x in features:
            head(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()


@healthy
def gradual_unfreezing():
    net = blocks(64, 8)
    for p in net.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.Adam(net.parameters())
    for layer in reversed(net):
        for p in layer.parameters():
            p.requires_grad_(True)
        train(net, times(15), optimizer, lambda: batch(64, 64))


@healthy
def grown_layer_by_layer():
    layers = []
    for _ in range(5):
        layers.append(Block(64).cuda())
        net = nn.Sequential(*layers)
        train(net, times(30), torch.optim.Adam(net.parameters()), lambda: batch(64, 64))


@healthy
def tested_after_training():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(4):
        train(net, times(20), optimizer)
        losses = [serve(net, batch()).mean() for _ in range(30)]
    results = [serve(net, batch()) for _ in range(times(300))]
    return losses, results[-1]


@healthy
def outputs_dropped_before_a_test():
    net, outputs = model(), []
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(80)):
        train(net, 1, optimizer)
        outputs.append(serve(net, batch()).repeat(1, 8))
    print(torch.stack(outputs).mean().item(), file=sys.stderr)
    outputs.clear()
    for _ in range(times(300)):
        serve(net, batch())


# Slow leaks


@slow_leak
def statistics_of_each_step():
    net, kept = model(2048), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(times(300)):
        loss = net(batch(64, 2048)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(stays(loss.detach().repeat(128)))  # leak
    return kept


@slow_leak
def answers_of_a_server():
    net, answers = model(2048), {}
    for request in range(times(400)):
        y = serve(net, batch(64, 2048))
        answers[request] = stays(y[:32].repeat(1, 2)[:, :16].contiguous())  # leak
    return answers


def main(names):
    if names == ["--list"]:
        print("leaks", *LEAKS)
        print("slow", *SLOW)
        print("healthy", *HEALTHY)
        return
    random.seed(SEED)
    import torch._dynamo  # noqa: F401  the first optimizer does, which takes a second in each process
    gc.collect()
    gc.freeze()  # what is imported is not looked at by each process's collections
    for name in names:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            kept = (LEAKS.get(name) or SLOW.get(name) or HEALTHY[name])()
            torch.cuda.synchronize()
            print(name, os.getpid(), leaked, flush=True)
            del kept
            sys.exit()
        if os.waitpid(child, 0)[1]:
            raise SystemExit(f"{name} failed")


if __name__ == "__main__":
    main(sys.argv[1:])
