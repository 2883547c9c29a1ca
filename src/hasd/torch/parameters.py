"""A model's parameters, sorted by the norm that suits their layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

TABLES = (torch.nn.Embedding, torch.nn.EmbeddingBag)
"""Modules whose weights are tables: each row stands for itself, and no vector is multiplied by the matrix."""
NORMS = (torch.nn.LayerNorm, torch.nn.GroupNorm, torch.nn.RMSNorm, torch.nn.modules.batchnorm._NormBase)
"""Modules whose gains and biases multiply entry by entry, whatever their shapes."""
TRANSPOSED = torch.nn.modules.conv._ConvTransposeNd
"""Convolutions whose first axis is that of the inputs."""


def parameter_groups(
    model: torch.nn.Module,
    *,
    entrywise: Iterable[str] = (),
    matrices: Mapping[str, Any] | None = None,
    others: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Groups for `StochasticHASD`: spectral steps for the matrices of a model, l_inf steps for everything else.

    Matrices are the parameters of which two or more axes are longer than 1; a convolution counts as the matrix of its
    output channels.  The others are vectors, scalars, complex tensors, embeddings, gains and biases of norms, and
    transposed convolutions, whose first axis is not that of the outputs.  A parameter that several modules share is an
    embedding if one of them is one.  Parameters that need no gradient are left out.

    Parameters
    ----------
    model : torch.nn.Module
        The model.
    entrywise : iterable of str
        Names of parameters or modules, as ``named_parameters`` spells them, that belong to the others as well: usually
        the output layer.
    matrices, others : mapping, optional
        Settings of `StochasticHASD` for each of the two groups, such as ``{"lr": 0.02}``.

    Returns
    -------
    list of dict
        The groups that have parameters, with ``params``, ``geometry`` and the settings.

    Examples
    --------
    >>> import torch
    >>> from hasd.torch import StochasticHASD, parameter_groups
    >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    >>> groups = parameter_groups(model, entrywise=["2"], matrices={"lr": 0.02})
    >>> [(group["geometry"], len(group["params"])) for group in groups]
    [('spectral', 1), ('lp', 4)]
    >>> optimizer = StochasticHASD(groups, lr=1e-3, scale="unit", betas=(0.81, 0.9), coupling=None)
    """
    named = dict(model.named_parameters())
    prefixes = list(entrywise)
    for prefix in prefixes:
        if not any(_is_below(name, prefix) for name, _ in model.named_parameters(remove_duplicate=False)):
            raise ValueError(f"entrywise names {prefix!r}, but the model has no parameter or module of that name")
    entries = (*TABLES, *NORMS, TRANSPOSED)
    alone = {id(q) for module in model.modules() if isinstance(module, entries) for q in module.parameters()}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if any(_is_below(name, prefix) for prefix in prefixes) or _is_vector(parameter) or parameter.is_complex():
            alone.add(id(parameter))
    learnt = [parameter for parameter in named.values() if parameter.requires_grad]
    groups = [
        {"params": [q for q in learnt if id(q) not in alone], "geometry": "spectral", **(matrices or {})},
        {"params": [q for q in learnt if id(q) in alone], "geometry": "lp", **(others or {})},
    ]
    return [group for group in groups if group["params"]]


def _is_vector(parameter: torch.Tensor) -> bool:
    """Whether at most one axis is longer than 1."""
    return sum(length > 1 for length in parameter.shape) < 2


def _is_below(name: str, prefix: str) -> bool:
    """Whether a parameter has this name, or belongs to the module of this name."""
    return name == prefix or name.startswith(prefix + ".")
