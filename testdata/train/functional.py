"""A transformer of plain functions, trained: no module says what the memory is for."""
import torch

WIDTH, LAYERS = 128, 6


def attention(q, k, v):
    scores = q @ k.transpose(-1, -2) / WIDTH**0.5
    return torch.softmax(scores, -1) @ v


def norm(x, scale):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * scale


def mlp(x, up, down):
    return torch.nn.functional.gelu(x @ up) @ down


def layer(x, w):
    h = norm(x, w["before"])
    x = x + attention(h @ w["q"], h @ w["k"], h @ w["v"]) @ w["out"]
    return x + mlp(norm(x, w["between"]), w["up"], w["down"])


def forward(x, weights):
    for w in weights:
        x = layer(x, w)
    return x


def weight(*shape):
    return torch.randn(*shape, device="cuda", requires_grad=True)


def main():
    weights = [{"before": weight(WIDTH), "between": weight(WIDTH), "up": weight(WIDTH, 4 * WIDTH), "down": weight(4 * WIDTH, WIDTH),
                **{name: weight(WIDTH, WIDTH) for name in ("q", "k", "v", "out")}} for _ in range(LAYERS)]
    optimizer = torch.optim.Adam([w for layer in weights for w in layer.values()])
    for _ in range(5):
        forward(torch.randn(16, 256, WIDTH, device="cuda"), weights).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
