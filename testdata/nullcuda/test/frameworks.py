"""Runs real frameworks on the null GPU and checks what they say about memory.

    frameworks.py [SPEC...]      default: torch==2.7.1 torch==2.15.0 mxnet-cu112==1.9.1 cupy-cuda12x==12.3.0

Makes the environments that are missing (downloads of 0.2 to 0.8 GB each).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import venv  # noqa: E402

TRAIN = HERE.parent.parent / "train"
DEFAULT = ("torch==2.7.1", "torch==2.15.0", "mxnet-cu112==1.9.1", "cupy-cuda12x==12.3.0")
LIMIT_S = 1800  # ends a program that hangs; no measure of speed
GIB = 1 << 30

FEATURES = """
import torch
assert torch.cuda.get_device_name() == "Null GPU", torch.cuda.get_device_name()
free, total = torch.cuda.mem_get_info()
block = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
assert torch.cuda.mem_get_info() == (free - (64 << 20), total), torch.cuda.mem_get_info()
host = torch.arange(1000).pin_memory()
assert host.is_pinned() and not torch.arange(3).is_pinned()
device = host.to("cuda", non_blocking=True)
assert torch.equal(device.cpu(), host)
stream = torch.cuda.Stream()
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
with torch.cuda.stream(stream):
    start.record()
    copy = device.clone()
    end.record()
stream.synchronize()
assert end.query() and start.elapsed_time(end) >= 0
torch.cuda.synchronize()
before = torch.cuda.memory_allocated()
del block
assert torch.cuda.memory_allocated() == before - (64 << 20)
torch.cuda.empty_cache()
"""
# Weights are real when they are copied to the device, so only copies may be compared.
GRAPH = """
import torch
x = torch.zeros(1024, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    y = x * 2 + 1
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2 + 1
graph.replay()
torch.cuda.synchronize()
assert y.shape == x.shape
"""
LIBRARIES = """
import torch
from torch import nn
torch.backends.cudnn.enabled = False
layer = nn.TransformerEncoderLayer(256, 8, batch_first=True).cuda()
with torch.autocast("cuda", dtype=torch.bfloat16):
    layer(torch.randn(4, 64, 256, device="cuda")).float().mean().backward()
q = torch.randn(2, 8, 128, 64, device="cuda", dtype=torch.half, requires_grad=True)
nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
    layer(torch.randn(4, 64, 256, device="cuda"))
assert len(profile.key_averages()) > 10
torch.cuda.memory._record_memory_history()
block = torch.empty(100, device="cuda")
assert torch.cuda.memory._snapshot()["segments"]
torch.fft.fft(torch.randn(64, device="cuda"))
torch.linalg.svd(torch.randn(8, 8, device="cuda"))
torch.sort(torch.randn(1000, device="cuda"))
torch.sparse_coo_tensor([[0], [0]], [1.0], (2, 2), device="cuda") @ torch.zeros(2, 2, device="cuda")
assert torch.cuda.nccl.version() > (2, 0) and torch.backends.cudnn.version() > 9000
"""
FORK = """
import os, torch
torch.zeros(1, device="cuda")
child = os.fork()
if child == 0:
    try:
        torch.zeros(1, device="cuda")
    except RuntimeError as error:
        os._exit(0 if "forked subprocess" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
"""
OOM = """
import torch
keep = torch.empty(60_000_000, dtype=torch.uint8, device="cuda")
try:
    torch.empty(60_000_000, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    assert "95.37 MiB" in str(error), error
else:
    raise SystemExit("no OutOfMemoryError")
"""


class Suite:
    """The cases of one environment, counted."""

    def __init__(self, spec):
        self.spec, self.passed, self.failed = spec, 0, 0
        self.directory = venv.ensure(spec)

    def run(self, name, arguments, check=None, **environment):
        """Runs a program; `check` gets its counters, if it wrote any."""
        with tempfile.TemporaryDirectory() as folder:
            counters = pathlib.Path(folder) / "counters.json"
            if arguments[0] != "-c":
                arguments = [TRAIN / arguments[0], *arguments[1:], "--memory-stats", counters]
            command = [self.directory / "bin" / "nullcuda-run", "python", *arguments]
            try:
                done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=LIMIT_S,
                                      env={**os.environ, "NULLCUDA_SHARED": "none", **environment})
                problem = done.stderr.strip()[-1500:] if done.returncode else ""
                if not problem and check:
                    problem = check(json.loads(counters.read_text()))
            except subprocess.TimeoutExpired:
                problem = f"did not end in {LIMIT_S} s"
        self.failed += bool(problem)
        self.passed += not problem
        print(f"{'FAIL' if problem else 'ok'} {self.spec} {name}{': ' + problem if problem else ''}", flush=True)


def caching(least, most):
    """The caching allocator's counters agree with each other and with what the device reports."""
    def check(counters):
        for device, of in counters.items():
            current, peak = of["allocated_bytes.all.current"], of["allocated_bytes.all.peak"]
            reserved = of["reserved_bytes.all.current"]
            used = of["device_total"] - of["device_free"]
            if not (0 < current <= peak <= of["reserved_bytes.all.peak"] and current <= reserved):
                return f"device {device}: counters contradict each other: {current} {peak} {reserved}"
            if used < reserved or used > reserved + (256 << 20):
                return f"device {device}: reserved {reserved}, but the device reports {used} used"
            if not least <= peak <= most:
                return f"device {device}: peak {peak} is not within {least} to {most}"
        return ""
    return check


def in_use(counters):
    """The device reports memory in use, whatever the framework counts."""
    of = counters["0"]
    return "" if of["device_free"] < of["device_total"] else "the device reports nothing in use"


def torch_cases(suite):
    suite.run("features", ["-c", FEATURES])
    suite.run("out of memory", ["-c", OOM], NULLCUDA_MEM="100000000")
    suite.run("fork", ["-c", FORK])
    suite.run("other libraries", ["-c", LIBRARIES])
    suite.run("graph", ["-c", GRAPH])
    suite.run("gpt2", ["gpt2.py"], caching(4 * GIB, 6 * GIB))
    suite.run("gpt2 wider", ["gpt2.py", "--width", "2", "--exit-now"], caching(4 * GIB, 6 * GIB))
    suite.run("gpt2 foreach", ["gpt2.py", "--foreach"], caching(4 * GIB, 7 * GIB))
    suite.run("resnet", ["resnet.py"], caching(1 << 20, GIB))
    suite.run("resnet with workers", ["resnet.py", "--workers", "2"], caching(1 << 20, GIB))
    suite.run("two optimizers", ["two_optimizers.py"], caching(1 << 20, GIB))
    suite.run("lstm", ["lstm.py"], caching(1 << 20, GIB))
    suite.run("two devices", ["two_devices.py"], caching(1 << 20, GIB), NULLCUDA_DEVICES="2")
    suite.run("without caching", ["gpt2.py"], in_use, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    for name, setting in (("expandable segments", "expandable_segments:True"),
                          ("cudaMallocAsync", "backend:cudaMallocAsync")):
        suite.run(name, ["gpt2.py"], caching(4 * GIB, 6 * GIB), PYTORCH_CUDA_ALLOC_CONF=setting)


def main():
    failed = passed = 0
    for spec in sys.argv[1:] or DEFAULT:
        suite = Suite(spec)
        if spec.startswith("torch"):
            torch_cases(suite)
        else:
            suite.run("train", ["mxnet_gluon.py" if spec.startswith("mxnet") else "cupy_arrays.py"], in_use)
        passed += suite.passed
        failed += suite.failed
    print(f"{passed} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
