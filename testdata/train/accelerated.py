"""Trains a small GPT-2 with Hugging Face's accelerate: mixed precision, gradients of
two batches for every step."""
import accelerate
import torch
from torch import nn
from torch.utils.data import DataLoader

import gpt2
import oracle

LAYERS, VOCABULARY, LENGTH, BATCH, ACCUMULATED = 4, 8000, 128, 8, 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, gpt2.DIM)
        self.wpe = nn.Embedding(LENGTH, gpt2.DIM)
        self.h = nn.Sequential(*(gpt2.Block(4 * gpt2.DIM) for _ in range(LAYERS)))
        self.ln_f = nn.LayerNorm(gpt2.DIM)
        self.head = nn.Linear(gpt2.DIM, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        logits = self.head(self.ln_f(self.h(x)))
        return nn.functional.cross_entropy(logits.view(-1, VOCABULARY), tokens.view(-1))


def main():
    parser = oracle.parser(__doc__)
    options = parser.parse_args()
    torch.manual_seed(0)
    accelerator = accelerate.Accelerator(gradient_accumulation_steps=ACCUMULATED, mixed_precision="bf16")
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = DataLoader(torch.zeros(BATCH * ACCUMULATED * options.steps, LENGTH, dtype=torch.long), batch_size=BATCH)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for tokens in loader:
        with accelerator.accumulate(model):
            loss = model(tokens)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    print(f"{options.steps} steps, peak {torch.cuda.max_memory_allocated()} allocated")
    oracle.finish(options, model, optimizer, loader, loss)


if __name__ == "__main__":
    main()
