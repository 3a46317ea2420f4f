"""Programs that leak, and programs that look as if they did.

    programs.py NAME...      runs these, each in a forked process of its own
    programs.py --list       prints the names of both kinds

GROWTH_TIMES makes them so many times as long, GROWTH_SEED gives other random numbers.

A leaking program has one line marked `# leak`: the one whose memory stays.
"""
import collections
import os
import random
import sys
import threading

import torch
from torch import nn

LEAKS, HEALTHY = {}, {}
TIMES, SEED = int(os.environ.get("GROWTH_TIMES", "1")), int(os.environ.get("GROWTH_SEED", "1"))


def leak(function):
    LEAKS[function.__name__] = function


def healthy(function):
    HEALTHY[function.__name__] = function


def times(count):
    return TIMES * count


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


# Leaks


@leak
def outputs_in_a_list():
    net, kept = model(), []
    for _ in range(times(400)):
        kept.append(serve(net, batch())[:, :2].clone())  # leak


@leak
def cache_without_a_limit():
    net, cache = model(), {}
    for request in range(times(500)):
        y = serve(net, batch())
        cache[request] = y.mean(0, keepdim=True)  # leak
    return cache


@leak
def kv_cache_never_reset():
    net, kv = model(), torch.empty(0, 256, device="cuda")
    for _ in range(times(500)):
        x = batch(4)
        serve(net, batch())
        kv = torch.cat([kv, x[:1]])  # leak


@leak
def loss_that_keeps_its_graph():
    net, total = model(64, 2), 0
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(times(300)):
        loss = net(batch(256, 64)).mean()  # leak
        total = total + loss
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()


@leak
def hook_that_collects():
    net, seen = model(), []
    net[0].register_forward_hook(lambda module, args, out: seen.append(out[:1].clone()))  # leak
    for _ in range(times(400)):
        serve(net, batch())


@leak
def slow():
    net, kept = model(), []
    for step in range(times(2000)):
        serve(net, batch())
        if step % 20 == 19:
            kept.append(torch.zeros(256, device="cuda"))  # leak


@leak
def from_the_middle_on():
    net, kept = model(), []
    for step in range(times(900)):
        serve(net, batch())
        if step > times(300):
            kept.append(torch.zeros(1024, device="cuda"))  # leak


@leak
def in_a_thread():
    net, kept = model(), []

    def worker():
        for _ in range(times(200)):
            serve(net, batch())
            kept.append(torch.zeros(2048, device="cuda"))  # leak

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
        buffer.append(state.clone())  # leak
        train(net, 1, optimizer, lambda: torch.cat(random.sample(buffer, min(4, len(buffer)))))


@leak
def metrics_on_the_device():
    net, history = model(), []
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(times(300)):
        loss = net(batch()).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(loss.detach().clone())  # leak


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
    torch.backends.cudnn.enabled = False  # it finds no kernels on the null GPU
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


def main(names):
    if names == ["--list"]:
        print("leaks", *LEAKS)
        print("healthy", *HEALTHY)
        return
    random.seed(SEED)
    for name in names:
        child = os.fork()
        if child == 0:
            kept = (LEAKS.get(name) or HEALTHY[name])()
            torch.cuda.synchronize()
            del kept
            sys.exit()
        print(name, child, flush=True)
        if os.waitpid(child, 0)[1]:
            raise SystemExit(f"{name} failed")


main(sys.argv[1:])
