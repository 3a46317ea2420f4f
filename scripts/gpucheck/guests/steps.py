# SPDX-License-Identifier: Apache-2.0
"""Times training steps of GPT-2 small, each to the end of its work on the device: short ones and long ones. Prints medians in seconds."""

import contextlib
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "testdata" / "train"))
import gpt2  # noqa: E402
import oracle  # noqa: E402
import torch  # noqa: E402

oracle.tag = lambda name: contextlib.nullcontext()  # the program as anybody would write it
torch.backends.cudnn.enabled = torch.cuda.get_device_name(0) != "Null GPU"
torch.manual_seed(0)
model = gpt2.GPT2(gpt2.LAYERS, 1)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)


def step(tokens):
    loss = torch.nn.functional.cross_entropy(model(tokens).view(-1, gpt2.VOCABULARY), tokens.view(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def median_step(batch, length, count):
    tokens = torch.zeros(batch, length, dtype=torch.long, device="cuda")
    times = []
    for _ in range(count + count // 4 + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        step(tokens)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times[-count:])


steps = int(sys.argv[1])
print(json.dumps({"short": median_step(1, 64, steps), "long": median_step(8, 256, steps)}))
