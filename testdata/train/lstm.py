"""Trains a two-layer LSTM language model with truncated backpropagation, gradient
clipping and a learning rate schedule. cuDNN is off."""
import torch
from torch import nn

import oracle

VOCABULARY, DIM, HIDDEN, LAYERS, LENGTH, BATCH = 10000, 256, 512, 2, 35, 20


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, DIM)
        self.lstm = nn.LSTM(DIM, HIDDEN, LAYERS, dropout=0.2)
        self.head = nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, tokens, state):
        output, state = self.lstm(self.embedding(tokens), state)
        return self.head(output), state


def main():
    options = oracle.parser(__doc__).parse_args()
    torch.backends.cudnn.enabled = False
    torch.manual_seed(0)
    model = Model().cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.95)
    text = torch.zeros(options.steps * LENGTH + 1, BATCH, dtype=torch.long)
    state = None
    for i in range(options.steps):
        oracle.step()
        part = text[i * LENGTH:(i + 1) * LENGTH + 1].cuda()
        if state is not None:
            state = tuple(tensor.detach() for tensor in state)
        output, state = model(part[:-1], state)
        loss = nn.functional.cross_entropy(output.reshape(-1, VOCABULARY), part[1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        schedule.step()
    print(f"{options.steps} steps, peak {torch.cuda.max_memory_allocated()} allocated")
    oracle.finish(options, model, optimizer, part, state, output, loss)


if __name__ == "__main__":
    main()
