"""What the tests of PyTorch's optimizers for training share: parameters, gradients of noise, Lion."""

import torch


def start(*shapes, dtype=torch.float64):
    """Parameters that are not 0, the same in each call."""
    chance = torch.Generator().manual_seed(8)
    return [torch.randn(shape, generator=chance, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def with_noise(parameters, steps, seed=5, scale=1.0):
    """Sets gradients of noise, in each step those of the same seed."""
    chance = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        for p in parameters:
            noise = torch.randn(p.shape, generator=chance, dtype=torch.float64)
            p.grad = (scale * noise).to(p.dtype) + 0.1 * p.detach()
        yield


def equal(ones, others):
    return all(torch.equal(a, b) for a, b in zip(ones, others, strict=True))


def close(ones, others, atol=1e-12):
    return all(torch.allclose(a, b, rtol=0.0, atol=atol) for a, b in zip(ones, others, strict=True))


def lion(parameters, grads, m, lr, betas, weight_decay):
    """Chen et al. 2023, as its authors' code does it."""
    with torch.no_grad():
        for p, g, average in zip(parameters, grads, m, strict=True):
            p.mul_(1.0 - lr * weight_decay)
            p.add_((average * betas[0] + g * (1.0 - betas[0])).sign_(), alpha=-lr)
            average.mul_(betas[1]).add_(g, alpha=1.0 - betas[1])
