"""Trains a GAN: the generator with SGD and momentum, the discriminator with Adam,
in turns."""
import torch
from torch import nn

import oracle

NOISE, PIXELS, HIDDEN, BATCH = 128, 3 * 32 * 32, 1024, 64


def main():
    options = oracle.parser(__doc__).parse_args()
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(NOISE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                              nn.Linear(HIDDEN, PIXELS), nn.Tanh()).cuda()
    discriminator = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.LeakyReLU(0.2), nn.Dropout(0.3),
                                  nn.Linear(HIDDEN, 1)).cuda()
    descend = torch.optim.SGD(generator.parameters(), lr=0.01, momentum=0.9)
    judge = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    real, fake = torch.ones(BATCH, 1, device="cuda"), torch.zeros(BATCH, 1, device="cuda")
    images = torch.randn(BATCH, PIXELS).pin_memory()
    for _ in range(options.steps):
        oracle.step()
        made = generator(torch.randn(BATCH, NOISE, device="cuda"))
        judge.zero_grad()
        shown = images.cuda(non_blocking=True)
        judged = criterion(discriminator(shown), real) + criterion(discriminator(made.detach()), fake)
        judged.backward()
        judge.step()
        descend.zero_grad()
        fooled = criterion(discriminator(made), real)
        fooled.backward()
        descend.step()
    print(f"{options.steps} steps, peak {torch.cuda.max_memory_allocated()} allocated")
    oracle.finish(options, generator, discriminator, descend, judge, real, fake, images, shown, made, judged, fooled)


if __name__ == "__main__":
    main()
