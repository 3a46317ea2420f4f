"""Programs that are over soon after their first use of the device: one that only makes a model, one that makes a step with it, one whose model takes its time to get there, one that copies it
while names are read, one that has it in an object and in a function's variable.

names_short.py model|step|moving|copying|held
"""
import copy
import sys
import time

import torch
from torch import nn

model = nn.Sequential(nn.Linear(40, 300), nn.Linear(300, 5))
if sys.argv[1] == "moving":  # in parts, as from slow storage; what modules have is looked at meanwhile
    model[0].cuda()
    for _ in range(120):
        time.sleep(0.01)
model.cuda()


class Slow:
    """Takes its time to be copied: what modules have is looked at meanwhile, by the variables of copy's functions."""

    def __setstate__(self, state):
        for _ in range(120):
            time.sleep(0.01)


class Trainer:
    def __init__(self):
        self.net = nn.Linear(40, 7)

    def run(self):
        net = self.net.cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(4, 40, device="cuda")).sum().backward()
        optimizer.step()


if sys.argv[1] == "copying":
    model.slow, model.slow.state = Slow(), 1
    average = copy.deepcopy(model)
elif sys.argv[1] == "held":
    trainer = Trainer()
    trainer.run()
if sys.argv[1] not in ("model", "copying", "held"):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    for _ in range(1 if sys.argv[1] == "step" else 3):
        model(torch.ones(4, 40, device="cuda")).sum().backward()
        optimizer.step()
if sys.argv[1] == "moving":  # so that nothing is left to look at in the end
    del model, optimizer
