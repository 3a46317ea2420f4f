"""One image through VGG-19, without training. The convolutions are made of matrices (im2col) or of Fourier transforms."""
import torch
from torch import nn
from torch.nn import functional

import oracle

PLAN = (64, 64, 0, 128, 128, 0, 256, 256, 256, 256, 0, 512, 512, 512, 512, 0, 512, 512, 512, 512, 0)


def im2col(x, weight, bias):
    """The columns of all windows beside each other, times the weights as a matrix."""
    columns = functional.unfold(x, 3, padding=1)
    return (weight.flatten(1) @ columns + bias[:, None]).unflatten(2, x.shape[2:])


def fft(x, weight, bias):
    """All products of the transformed image with the transformed kernels, which are as large as the image."""
    size = x.shape[2] + 2, x.shape[3] + 2
    image, kernels = torch.fft.rfft2(x, size), torch.fft.rfft2(weight, size)
    return torch.fft.irfft2(torch.einsum("bihw,oihw->bohw", image, kernels.conj()), size)[:, :, : x.shape[2], : x.shape[3]] + bias[:, None, None]


class Convolution(nn.Module):
    def __init__(self, inputs, outputs, way):
        super().__init__()
        self.way = way
        self.weight, self.bias = nn.Parameter(torch.zeros(outputs, inputs, 3, 3)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return functional.relu(self.way(x, self.weight, self.bias))


def vgg19(way, pixels):
    layers, inputs = [], 3
    for outputs in PLAN:
        layers.append(Convolution(inputs, outputs, way) if outputs else nn.MaxPool2d(2))
        inputs = outputs or inputs
    head = nn.Linear(512 * (pixels // 32) ** 2, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)
    return nn.Sequential(*layers, nn.Flatten(), *head)


def main():
    parser = oracle.parser(__doc__, steps=1)
    parser.add_argument("--convolution", choices=("im2col", "fft"), default="im2col")
    parser.add_argument("--pixels", type=oracle.positive, default=256)
    options = parser.parse_args()
    model = vgg19({"im2col": im2col, "fft": fft}[options.convolution], options.pixels).cuda()
    image = torch.zeros(1, 3, options.pixels, options.pixels, device="cuda")
    with torch.no_grad():
        for _ in range(options.steps):
            oracle.step()
            scores = model(image)
    print(f"{options.convolution}: {scores.shape[1]} scores, {torch.cuda.max_memory_allocated()} bytes at most")
    oracle.finish(options, model, image, scores)
    return model


if __name__ == "__main__":
    model = main()  # lives to the end of a short run, where its modules get their names
