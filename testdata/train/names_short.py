"""Programs that are over some milliseconds after their first use of the device: one that only makes a model, one that makes a step with it.

names_short.py model|step
"""
import sys

import torch
from torch import nn

model = nn.Sequential(nn.Linear(40, 300), nn.Linear(300, 5)).cuda()
if sys.argv[1] == "step":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    model(torch.ones(4, 40, device="cuda")).sum().backward()
    optimizer.step()
