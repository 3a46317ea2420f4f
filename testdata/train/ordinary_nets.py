"""Networks for whose layers PyTorch asks cuDNN and cuBLAS, with nothing set for the null GPU, on every device there is.
Prints PyTorch's own peak and each device's size, as JSON."""
import json

import torch
from torch import nn


def networks():
    images = torch.randn(4, 3, 32, 32)
    words = torch.randn(12, 4, 32)
    yield nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 3, 3)), images
    for recurrent in (nn.LSTM(32, 64, num_layers=2, bidirectional=True), nn.LSTM(32, 64, proj_size=16),
                      nn.GRU(32, 64, bias=False), nn.RNN(32, 64)):
        yield recurrent, words
    yield nn.TransformerEncoderLayer(32, 4, 64), words


for device in range(torch.cuda.device_count()):
    for network, inputs in networks():
        network.to(device)
        optimizer = torch.optim.AdamW(network.parameters())
        for _ in range(2):
            out = network(inputs.to(device))
            loss = (out[0] if isinstance(out, tuple) else out).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            network(inputs.to(device))
    # What a network has to be, whatever computed it.
    lstm = nn.LSTM(32, 64, num_layers=2, bidirectional=True).to(device)
    bytes_of = sum(p.numel() * p.element_size() for p in lstm.parameters())
    assert lstm._flat_weights[0].untyped_storage().nbytes() == bytes_of
devices = range(torch.cuda.device_count())
print(json.dumps({"peaks": [torch.cuda.max_memory_allocated(d) for d in devices],
                  "totals": [torch.cuda.mem_get_info(d)[1] for d in devices]}))
