"""Where PyTorch's anomaly mode says that the nodes of the graphs of a training script
were made.

    anomaly.py OUTPUT SCRIPT [ARGUMENT...]

In anomaly mode every node keeps the Python stack of the forward operator that made
it. Before each backward pass the graph is walked and every node noted: OUTPUT is a
list of passes as JSON, each with the thread that asked for it and its nodes
{"sequence": number, "name": node, "stack": [[file, line, function], outermost first]}.
Nodes that backward passes make and use up themselves are not seen.
"""
import json
import re
import sys
import threading

import torch

import watched

FRAME = re.compile(r'\s*File "(.*)", line (\d+), in (.*)')
ACCUMULATE = 2**64 - 1  # the number of nodes that accumulate gradients

passes = []


def stack_of(node):
    frames = []
    for entry in node.metadata.get("traceback_") or ():
        if found := FRAME.match(entry):
            frames.append([found[1], int(found[2]), found[3]])
    return frames


def nodes_of(roots):
    nodes, waiting, seen = [], [root for root in roots if root is not None], set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        number = node._sequence_nr()
        if number != ACCUMULATE:
            nodes.append({"sequence": number, "name": node.name(), "stack": stack_of(node)})
        waiting += [child for child, _ in node.next_functions if child is not None]
    return nodes


def watched_call(call):
    def watch(tensors, *args, **kwargs):
        many = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
        passes.append({"thread": threading.get_native_id(), "nodes": nodes_of(tensor.grad_fn for tensor in many)})
        return call(tensors, *args, **kwargs)
    return watch


def main():
    output, *arguments = sys.argv[1:]
    torch.autograd.backward = watched_call(torch.autograd.backward)
    torch.autograd.grad = watched_call(torch.autograd.grad)
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    watched.script(arguments)
    with open(output, "w") as file:
        json.dump(passes, file)


if __name__ == "__main__":
    main()
