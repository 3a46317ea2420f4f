"""A compiled model, trained: prints how many bytes the results of sin hold at the peak.

That is in a late step, since what the compiler tries out in the first one is not part of the model.
"""
import torch
import torch._inductor.config
from torch import nn

torch._inductor.config.compile_threads = 1
ROWS, WIDTH, BLOCKS = 4096, 256, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        h = self.up(self.norm(x))
        return x + self.down(torch.sin(nn.functional.gelu(h)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
compiled = torch.compile(net)
for step in range(4):
    kept = torch.empty(step << 25, dtype=torch.uint8, device="cuda")
    compiled(torch.randn(ROWS, WIDTH, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(BLOCKS * ROWS * 4 * WIDTH * 4)
