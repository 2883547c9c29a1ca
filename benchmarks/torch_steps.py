"""What a step of `hasd.torch.StochasticHASD` costs, as a multiple of `torch.optim.AdamW(foreach=True)`.

    python -m benchmarks.torch_steps [millions of parameters]

One thread; the median over rounds in which every optimizer takes its turn, so that other load falls on all of them.
"""

import statistics
import sys
import time

import torch

from hasd.torch import Stacey, StochasticHASD

ROUNDS, STEPS = 15, 5
OPTIMIZERS = {
    "AdamW(foreach=True)": lambda q: torch.optim.AdamW(q, foreach=True),
    "AdamW(fused=True)": lambda q: torch.optim.AdamW(q, fused=True),
    "p=2, coupling": lambda q: StochasticHASD(q, 1e-3, p=2),
    "p=inf, coupling": lambda q: StochasticHASD(q, 1e-3),
    "p=inf, coupling, foreach": lambda q: StochasticHASD(q, 1e-3, foreach=True),
    "p=inf, coupling, weight decay": lambda q: StochasticHASD(q, 1e-3, weight_decay=0.01),
    "p=inf, coupling, norm='tensor'": lambda q: StochasticHASD(q, 1e-3, norm="tensor"),
    "p=inf, betas, scale='unit'": lambda q: StochasticHASD(
        q, 1e-3, scale="unit", coupling=None, betas=(0.9, 0.99), weight_decay=0.01
    ),
    "p=2, no momentum": lambda q: StochasticHASD(q, 1e-3, p=2, coupling=None),
    "p=3, coupling": lambda q: StochasticHASD(q, 1e-3, p=3),
    "Stacey(p,2), p=3": lambda q: Stacey(q),
}


def layers(millions):
    """Parameters of a transformer's shapes, with gradients: matrices and vectors."""
    chance, parameters, size = torch.Generator().manual_seed(0), [], 0
    while size < millions * 1e6:
        for shape in ((256, 256), (256,), (1024, 256), (1024,)):
            parameters.append(torch.randn(shape, generator=chance, requires_grad=True))
            parameters[-1].grad = 1e-3 * torch.randn(shape, generator=chance)
            size += parameters[-1].numel()
    return parameters


def main(millions):
    """Print seconds a step, and the multiple of the first."""
    torch.set_num_threads(1)
    made = {name: make(layers(millions)) for name, make in OPTIMIZERS.items()}
    times = {name: [] for name in made}
    for warm in (True, False):
        for _ in range(2 if warm else ROUNDS):
            for name, optimizer in made.items():
                begun = time.perf_counter()
                for _ in range(STEPS):
                    optimizer.step()
                if not warm:
                    times[name].append((time.perf_counter() - begun) / STEPS)
    first = statistics.median(next(iter(times.values())))
    for name, seen in times.items():
        middle = statistics.median(seen)
        print(f"{name:32s} {1e3 * middle:8.2f} ms a step {middle / first:6.2f} times {next(iter(times))}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
