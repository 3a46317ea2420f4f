"""Trains a small residual convolutional network fed by a DataLoader through
pinned memory. cuDNN is off: convolutions go through PyTorch's own kernels."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import oracle

CLASSES, IMAGES, SIZE = 10, 64, 32


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def network(width):
    stages, inputs = [], 16 * width
    for outputs, stride in ((16, 1), (16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        stages.append(Residual(inputs, outputs * width, stride))
        inputs = outputs * width
    return nn.Sequential(nn.Conv2d(3, 16 * width, 3, 1, 1, bias=False), nn.BatchNorm2d(16 * width), nn.ReLU(), *stages,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def main():
    parser = oracle.parser(__doc__)
    parser.add_argument("--width", type=oracle.positive, default=1, help="channels, as a multiple of 16")
    parser.add_argument("--workers", type=int, default=0, help="DataLoader processes")
    parser.add_argument("--batch", type=oracle.positive, default=32)
    options = parser.parse_args()
    torch.backends.cudnn.enabled = False
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(IMAGES, 3, SIZE, SIZE), torch.zeros(IMAGES, dtype=torch.long))
    loader = DataLoader(data, options.batch, num_workers=options.workers, pin_memory=True)
    model = network(options.width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    done = 0
    while done < options.steps:
        for images, labels in loader:
            oracle.step()
            images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == options.steps:
                break
    print(f"{done} steps, loss {loss.item():.3f}, peak {torch.cuda.max_memory_allocated()} allocated")
    oracle.finish(options, model, optimizer, images, labels, loss)


if __name__ == "__main__":
    main()
