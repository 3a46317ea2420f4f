"""Trains ResNet-50, as torchvision has it, on images of 224 x 224 with SGD and
momentum. cuDNN is off: convolutions go through PyTorch's own kernels."""
import torch
from torch import nn

import oracle

CLASSES, SIZE = 1000, 224
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, blocks, stride


def convolution(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Bottleneck(nn.Module):
    EXPANSION = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * self.EXPANSION
        self.conv1, self.bn1 = convolution(inputs, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = convolution(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = convolution(width, outputs, 1), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        return self.relu(out)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = convolution(3, 64, 7, 2), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for number, (width, blocks, stride) in enumerate(STAGES, 1):
            stage = []
            for block in range(blocks):
                stage.append(Bottleneck(inputs, width, stride if block == 0 else 1))
                inputs = width * Bottleneck.EXPANSION
            setattr(self, f"layer{number}", nn.Sequential(*stage))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, CLASSES)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def main():
    parser = oracle.parser(__doc__)
    parser.add_argument("--batch", type=oracle.positive, default=8)
    options = parser.parse_args()
    torch.backends.cudnn.enabled = False
    torch.manual_seed(0)
    model = ResNet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for _ in range(options.steps):
        images = torch.randn(options.batch, 3, SIZE, SIZE).cuda()
        labels = torch.zeros(options.batch, dtype=torch.long).cuda()
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{options.steps} steps, peak {torch.cuda.max_memory_allocated()} allocated")
    oracle.finish(options, model, optimizer, images, labels, loss)


if __name__ == "__main__":
    main()
