"""The critic's step of WGAN-GP on one table batch, in five ways. Each takes a batch and moves its own critic once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, PerUnitGradients
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.gradients import vmap_gradients
from workers.mechanism.noise import release
from workers.mechanism.outer_products import Perceptron, outer_product_gradients
from workers.mechanism.secure_random import SecureRandom
from workers.methods.engines import BLOCK_ROWS
from workers.networks.table import LEAKY_SLOPE, TableCritic
from workers.numerics.workspace import Workspace

WIDTHS = (8,) * 15  # 120 one-hot places
HIDDEN = (256, 256)
LOSS = CriticLoss(paired=True, gradient_penalty=10.0)

Step = Callable[[CriticBatch], None]


def make_critic(device: torch.device) -> TableCritic:
    torch.manual_seed(0)
    return TableCritic(sum(WIDTHS), HIDDEN).to(device)


def make_batch(rows: int, device: torch.device) -> CriticBatch:
    generator = torch.Generator().manual_seed(rows)
    records = [
        torch.cat([F.one_hot(torch.randint(width, (rows,), generator=generator), width) for width in WIDTHS], dim=1)
        for _ in range(2)
    ]
    real, fake = (record.float().to(device) for record in records)
    mix = torch.rand(rows, 1, generator=generator).to(device)
    present = torch.ones(rows, dtype=torch.bool, device=device)
    return CriticBatch(real, fake, mix, present, torch.arange(rows, device=device), rows)


def make_adam(critic: nn.Module) -> torch.optim.Adam:
    return torch.optim.Adam(list(critic.parameters()), lr=1e-4, betas=(0.0, 0.9), fused=True)


def autograd_step(device: torch.device) -> Step:
    """What one writes first: two backward passes by autograd, no privacy."""
    critic = make_critic(device)
    adam = make_adam(critic)

    def step(batch: CriticBatch) -> None:
        between = (batch.mix * batch.real + (1.0 - batch.mix) * batch.fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = LOSS.gradient_penalty * (slope.norm(dim=1) - 1.0) ** 2
        loss = penalty.mean() - critic(batch.real).mean() + critic(batch.fake).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()

    return step


def manual_step(device: torch.device) -> Step:
    """The floor: the same step without privacy, written out by hand for two hidden layers, one product a layer."""
    critic = make_critic(device)
    adam, space = make_adam(critic), Workspace()
    (first, second), last = critic.layers, critic.output
    for tensor in critic.parameters():
        tensor.grad = torch.empty_like(tensor)
    signs = torch.tensor([1.0, -1.0, 1.0], device=device).view(3, 1, 1)

    def times_slope(gradient: Tensor, state: Tensor, into: Tensor) -> None:
        torch.ops.aten.leaky_relu_backward.grad_input(gradient, state, LEAKY_SLOPE, True, grad_input=into)

    @torch.no_grad()
    def step(batch: CriticBatch) -> None:
        rows = len(batch.real)

        def take(name: str, *shape: int) -> Tensor:
            return space.take(name, shape, like=batch.real)

        x, h1, h2 = take("x", 3, rows, sum(WIDTHS)), take("h1", 3, rows, HIDDEN[0]), take("h2", 3, rows, HIDDEN[1])
        x[0], x[1] = batch.fake, batch.real
        torch.addmm(first.bias, x[:2].flatten(0, 1), first.weight.T, out=h1[:2].flatten(0, 1))
        torch.lerp(h1[0], h1[1], batch.mix, out=h1[2])
        F.leaky_relu_(h1, LEAKY_SLOPE)
        torch.addmm(second.bias, h1.flatten(0, 1), second.weight.T, out=h2.flatten(0, 1))
        F.leaky_relu_(h2, LEAKY_SLOPE)
        u1, u2 = take("u1", *h1.shape), take("u2", *h2.shape)
        times_slope((signs * last.weight).expand_as(h2), h2, u2)
        torch.mm(u2.flatten(0, 1), second.weight, out=u1.flatten(0, 1))
        times_slope(u1, h1, u1)
        pull = torch.mm(u1[2], first.weight, out=x[2])
        length = torch.linalg.vector_norm(pull, dim=1, keepdim=True)
        pull.mul_(2.0 * LOSS.gradient_penalty * (length - 1.0) / length.clamp(min=1e-12))
        times_slope(torch.mm(x[2], first.weight.T, out=take("q", rows, HIDDEN[0])), h1[2], h1[2])
        times_slope(torch.mm(h1[2], second.weight.T, out=take("q", rows, HIDDEN[1])), h2[2], h2[2])
        for layer, delta, right in ((first, u1, x), (second, u2, h1)):
            torch.mm(delta.flatten(0, 1).T, right.flatten(0, 1), out=layer.weight.grad).div_(rows)
            torch.sum(delta[:2], (0, 1), out=layer.bias.grad).div_(rows)
        sums = h2.sum(dim=1)
        last.weight.grad.copy_((sums[0] - sums[1] + sums[2]) / rows)
        adam.step()

    return step


def private_step(device: torch.device, *, engine: str, noise: bool = True) -> Step:
    """The private step as `Idpgan` makes it: clip in two groups, add up, noise, divide, Adam."""
    critic = make_critic(device)
    adam, space, randomness = make_adam(critic), Workspace(), SecureRandom()
    tensors = list(critic.parameters())
    detached = [tensor.detach() for tensor in tensors]
    is_bias = [tensor.dim() == 1 for tensor in tensors]
    groups = tuple(tuple(m for m, bias in enumerate(is_bias) if bias is wanted) for wanted in (False, True))

    def blocks(batch: CriticBatch) -> Iterator[PerUnitGradients]:
        for start in range(0, batch.units, BLOCK_ROWS[engine]):
            rows = slice(start, start + BLOCK_ROWS[engine])
            present = batch.present[rows]
            owner = torch.arange(len(present), device=device)
            part = CriticBatch(batch.real[rows], batch.fake[rows], batch.mix[rows], present, owner, len(present))
            if engine == "vmap":
                yield vmap_gradients(critic, part, LOSS)
            else:
                yield outer_product_gradients(
                    Perceptron(detached[0::2], detached[1::2], LEAKY_SLOPE), part, LOSS, space
                )

    @torch.no_grad()
    def step(batch: CriticBatch) -> None:
        clipped = clip_and_sum(
            blocks(batch),
            groups=groups,
            clip_norms=(0.1, 0.1),
            shapes=[tensor.shape for tensor in tensors],
            bounds=DrawBounds(2 * batch.units + 200, BLOCK_ROWS[engine], 1),
            device=device,
        )
        values = clipped.sum.values
        if noise:
            values = release(clipped.sum, noise_multiplier=1.0, randomness=randomness)
        for tensor, value in zip(tensors, values, strict=True):
            tensor.grad = (value / batch.units).to(torch.float32)
        adam.step()

    return step


def all_steps(device: torch.device) -> dict[str, Step]:
    return {
        "non-private by hand": manual_step(device),
        "plain autograd": autograd_step(device),
        "private": private_step(device, engine="outer_products"),
        "private, no noise": private_step(device, engine="outer_products", noise=False),
        "vmap(grad)": private_step(device, engine="vmap"),
    }
