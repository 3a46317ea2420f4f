"""Trains GPT-2 small (124 M parameters, untied output layer) on one token
repeated: what it allocates is what matters.

`--width 2` doubles the hidden layer of one block's MLP, h.5, and nothing else: a
pair of runs for `memtrace diff`. The program names its parts with memtrace tags
where the Python package can be imported, and runs the same without it.

The training loop computes the loss, or with `--loss inside` the model itself, as most
implementations of GPT-2 do.
"""
import time

import torch
from torch import nn

import oracle

LAYERS, DIM, HEADS, CONTEXT, BATCH, VOCABULARY = 12, 768, 12, 256, 8, 50257
WIDENED = 5


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (part.view(batch, length, HEADS, dim // HEADS).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-1, -2) / (dim // HEADS) ** 0.5, -1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, dim))


class Block(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.ln1 = nn.LayerNorm(DIM)
        self.attn = Attention()
        self.ln2 = nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, hidden), nn.GELU(), nn.Linear(hidden, DIM))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT2(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        with oracle.tag("embedding"):
            self.wte = nn.Embedding(VOCABULARY, DIM).cuda()
            self.wpe = nn.Embedding(CONTEXT, DIM).cuda()
        self.h = nn.ModuleList()
        for i in range(layers):
            with oracle.tag(f"h.{i}"):
                self.h.append(Block(4 * DIM * (width if i == WIDENED else 1)).cuda())
        with oracle.tag("head"):
            self.ln_f = nn.LayerNorm(DIM).cuda()
            self.head = nn.Linear(DIM, VOCABULARY, bias=False).cuda()

    def forward(self, tokens, targets=None):
        """The logits, and the loss where there are targets."""
        with oracle.tag("embedding"):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for i, block in enumerate(self.h):
            with oracle.tag(f"h.{i}"):
                x = block(x)
        with oracle.tag("head"):
            logits = self.head(self.ln_f(x))
        if targets is None:
            return logits
        return logits, nn.functional.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def main():
    parser = oracle.parser(__doc__)
    parser.add_argument("--width", type=oracle.positive, default=1, help=f"widen the MLP of h.{WIDENED} by this factor")
    parser.add_argument("--layers", type=oracle.positive, default=LAYERS)
    parser.add_argument("--foreach", action="store_true", help="let the optimizer batch its updates")
    parser.add_argument("--loss", choices=("outside", "inside"), default="outside", help="of the model (default %(default)s)")
    options = parser.parse_args()
    torch.backends.cudnn.enabled = False
    torch.manual_seed(0)
    model = GPT2(options.layers, options.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=options.foreach)
    tokens = torch.zeros(BATCH, CONTEXT, dtype=torch.long, device="cuda")
    times = []
    for _ in range(options.steps):
        oracle.step()
        start = time.perf_counter()
        if options.loss == "inside":
            logits, loss = model(tokens, tokens)
        else:
            logits = model(tokens)
            with oracle.tag("loss"):
                loss = nn.functional.cross_entropy(logits.view(-1, VOCABULARY), tokens.view(-1))
        loss.backward()
        with oracle.tag("optimizer"):
            optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - start)
    print(f"{options.steps} steps, median {sorted(times)[len(times) // 2] * 1e3:.2f} ms, "
          f"peak {torch.cuda.max_memory_allocated()} allocated, {torch.cuda.max_memory_reserved()} reserved")
    oracle.finish(options, model, optimizer, tokens, logits, loss)


if __name__ == "__main__":
    main()
