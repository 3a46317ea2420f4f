"""Trains with CUDA graphs: the whole step captured and replayed, or the model's
forward and backward pass by make_graphed_callables.

Prints what PyTorch's allocator holds for graphs in pools of their own, as JSON:
bytes of their segments, and of the blocks in them that are in use.
"""
import json

import torch
from torch import nn

import oracle

SIZES, BATCH, WARM_UP = (512, 1024, 1024, 256), 64, 3


def make():
    model = nn.Sequential(*(layer for a, b in zip(SIZES, SIZES[1:]) for layer in (nn.Linear(a, b), nn.GELU()))).cuda()
    return model, torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)


def train(model, optimizer, inputs, targets):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


def capture(*arguments):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        oracle.mark("capture")  # the state of random numbers, which has its memory before, is in no pool of the graph's
        loss = train(*arguments)
        oracle.mark("captured")
    return graph, loss


def whole_step(model, optimizer, inputs, targets, steps):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            train(model, optimizer, inputs, targets)
    torch.cuda.current_stream().wait_stream(side)
    graph, loss = capture(model, optimizer, inputs, targets)
    for _ in range(steps):
        graph.replay()
    return graph, loss


def capture_callables(model, inputs):
    return torch.cuda.make_graphed_callables(model, (inputs,))


def callables(model, optimizer, inputs, targets, steps):
    graphed = capture_callables(model, inputs)
    for _ in range(steps):
        loss = train(graphed, optimizer, inputs, targets)
    return graphed, loss


def private_pools():
    segments = [segment for segment in torch.cuda.memory_snapshot() if tuple(segment["segment_pool_id"]) != (0, 0)]
    return {"reserved": sum(segment["total_size"] for segment in segments), "allocated": sum(segment["allocated_size"] for segment in segments)}


def main():
    parser = oracle.parser(__doc__)
    parser.add_argument("--what", choices=("step", "callables"), default="step")
    options = parser.parse_args()
    model, optimizer = make()
    inputs, targets = torch.zeros(BATCH, SIZES[0], device="cuda"), torch.zeros(BATCH, SIZES[-1], device="cuda")
    kept = (whole_step if options.what == "step" else callables)(model, optimizer, inputs, targets, options.steps)
    print(json.dumps(private_pools()))
    oracle.finish(options, model, optimizer, inputs, targets, kept)


if __name__ == "__main__":
    main()
