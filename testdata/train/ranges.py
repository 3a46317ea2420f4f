"""Names what it does by PyTorch's own NVTX calls, in the main thread and through emit_nvtx in the threads of backward passes. Prints what a program can see: what was added to its environment, the answers of the calls, its
counters, its gradients."""
import os

import backward_threads
import torch

print("variable", os.environ.get("NVTX_INJECTION64_PATH"), os.getenv("NVTX_INJECTION64_PATH"))
with open("/proc/self/environ", "rb") as started_with:
    print("environment, but for what the process was started with", sorted(set(os.environb.items()) - {tuple(line.split(b"=", 1)) for line in started_with.read().split(b"\0") if line}))
torch.manual_seed(0)
print("push", torch.cuda.nvtx.range_push("outer"))
x = torch.zeros(1000, 1000, device="cuda")
with torch.cuda.nvtx.range("inner"):
    y = torch.ones(500, 500, device="cuda")
print("pop", torch.cuda.nvtx.range_pop(), torch.cuda.nvtx.range_pop())
print("mark", torch.cuda.nvtx.mark("loaded"))
z = torch.zeros(300, 300, device="cuda")
weight = torch.zeros(100, 100, device="cuda", requires_grad=True)
with torch.autograd.profiler.emit_nvtx(record_shapes=True):
    for _ in range(20):
        (weight @ weight).relu().sum().backward()
span = torch.cuda.nvtx.range_start("span")
print("start", span, "end", torch.cuda.nvtx.range_end(span))
print("peak", torch.cuda.max_memory_allocated(), "gradient", tuple(weight.grad.shape))
backward_threads.wait()
