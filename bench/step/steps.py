"""The critic's step of WGAN-GP on one batch, in several ways. Each takes a batch and moves its own critic once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.engines.choosing import BLOCK_ROWS, GradientEngine, choose_engine, image_critic_tensors
from workers.mechanism import CriticBatch, CriticLoss, Perceptron, PerUnitGradients
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.compiled_products import LIMITS
from workers.mechanism.convolutions.passes import image_passes
from workers.mechanism.convolutions.unit_gradients import UNITS_AT_ONCE
from workers.mechanism.noise import release
from workers.mechanism.secure_random import SecureRandom
from workers.networks.image import ImageCritic
from workers.networks.table import LEAKY_SLOPE, TableCritic
from workers.numerics.adam import Adam
from workers.numerics.kernels import Rows, compile_kernels
from workers.numerics.workspace import Workspace

WIDTHS = (8,) * 15  # 120 one-hot places
HIDDEN = (256, 256)
SHAPE, CHANNELS = (28, 28, 1), (64, 128, 256)
LOSS = CriticLoss(paired=True, gradient_penalty=10.0)

BY_HAND, AUTOGRAD, PRIVATE, NO_NOISE, WITH_LOOPS, VMAP = (
    "non-private by hand",
    "plain autograd",
    "private",
    "private, no noise",
    "non-private with the engine's compiled loops",
    "vmap(grad)",
)

Step = Callable[[CriticBatch], None]


@dataclass(frozen=True, slots=True)
class Setting:
    """A critic and the batches it is measured with."""

    name: str
    batches: tuple[int, ...]
    rounds: int
    slow_every: int
    """One round in so many runs vmap too."""
    kinds: tuple[str, ...] = (BY_HAND, AUTOGRAD, PRIVATE, NO_NOISE, VMAP)

    def make_critic(self, device: torch.device) -> TableCritic | ImageCritic:
        torch.manual_seed(0)
        critic = TableCritic(sum(WIDTHS), HIDDEN) if self.name == "perceptron" else ImageCritic(SHAPE, CHANNELS)
        return critic.to(device)

    def make_batch(self, rows: int, device: torch.device) -> CriticBatch:
        generator = torch.Generator().manual_seed(rows)

        def records() -> Tensor:
            if self.name != "perceptron":
                return torch.rand(rows, SHAPE[0] * SHAPE[1] * SHAPE[2], generator=generator)
            codes = (torch.randint(width, (rows,), generator=generator) for width in WIDTHS)
            return torch.cat([F.one_hot(c, width) for c, width in zip(codes, WIDTHS, strict=True)], dim=1).float()

        real, fake = records().to(device), records().to(device)
        mix = torch.rand(rows, 1, generator=generator).to(device)
        present = torch.ones(rows, dtype=torch.bool, device=device)
        return CriticBatch(real, fake, mix, present)

    def make_step(self, kind: str, device: torch.device) -> Step:
        critic = self.make_critic(device)
        if kind == AUTOGRAD:
            return autograd_step(critic)
        if kind == WITH_LOOPS and isinstance(critic, TableCritic):
            return step_with_loops(critic)
        if kind == BY_HAND:
            return manual_step(critic) if isinstance(critic, TableCritic) else manual_image_step(critic)
        return private_step(critic, vmap=kind == VMAP, noise=kind != NO_NOISE)


PERCEPTRON = Setting("perceptron", (64, 256, 1024), 200, 40, (BY_HAND, AUTOGRAD, PRIVATE, NO_NOISE, WITH_LOOPS, VMAP))
CONVOLUTIONS = Setting("convolutions", (64, 256, 512), 12, 12)


def make_adam(critic: nn.Module) -> Adam:
    return Adam(critic.parameters(), learning_rate=1e-4, betas=(0.0, 0.9))


def autograd_step(critic: nn.Module) -> Step:
    """What one writes first: two backward passes by autograd, no privacy."""
    adam = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9), fused=True)

    def step(batch: CriticBatch) -> None:
        between = (batch.mix * batch.real + (1.0 - batch.mix) * batch.fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = LOSS.gradient_penalty * (slope.norm(dim=1) - 1.0) ** 2
        loss = penalty.mean() - critic(batch.real).mean() + critic(batch.fake).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()

    return step


def manual_step(critic: TableCritic) -> Step:
    """The floor: the same step without privacy, written out by hand for two hidden layers, one product a layer."""
    adam, space = make_adam(critic), Workspace()
    (first, second), last = critic.layers, critic.output
    for tensor in critic.parameters():
        tensor.grad = torch.empty_like(tensor)
    signs = last.weight.new_tensor([1.0, -1.0, 1.0]).view(3, 1, 1)

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


def step_with_loops(critic: TableCritic) -> Step:
    """The floor once more: what the private engine has compiled for itself, compiled without norms; every row counts 1/B.

    As by hand where there is no compiler.
    """
    compiled = compile_kernels("-DWITHOUT_NORMS")
    if compiled is None:
        return manual_step(critic)
    adam, space, tensors = make_adam(critic), Workspace(), list(critic.parameters())
    weights, biases = ([tensor.detach() for tensor in tensors[start::2]] for start in (0, 1))
    sizes = [tensor.numel() for tensor in tensors]

    @torch.no_grad()
    def step(batch: CriticBatch) -> None:
        sums = torch.zeros(sum(sizes), dtype=torch.float64)
        share = torch.full((batch.units, len(tensors)), 1.0 / batch.units, dtype=torch.float64)
        compiled.perceptron_gradients(
            Perceptron(weights, biases, LEAKY_SLOPE),
            Rows(batch.fake, batch.real, batch.mix.view(-1), batch.present, batch.units, 1),
            paired=LOSS.paired,
            gradient_penalty=LOSS.gradient_penalty,
            limits=LIMITS,
            workspace=space,
            weighting=share,
            sums=sums,
        )
        for tensor, part in zip(tensors, torch.split(sums, sizes), strict=True):
            tensor.grad = part.view(tensor.shape).to(torch.float32)
        adam.step()

    return step


def manual_image_step(critic: ImageCritic) -> Step:
    """The floor for images: the engine's own passes, then one product a layer over all places, faster than a library's."""
    adam, space = make_adam(critic), Workspace()
    tensors = dict(critic.named_parameters())
    for tensor in tensors.values():
        tensor.grad = torch.empty_like(tensor)

    @torch.no_grad()
    def step(batch: CriticBatch) -> None:
        held = image_critic_tensors(critic)
        for tensor in tensors.values():
            tensor.grad.zero_()
        some = held.units_per_block()
        for start in range(0, batch.units, some):
            passes = image_passes(held, part_of(batch, slice(start, start + some)), LOSS, space)
            for layer, (delta, columns) in enumerate(zip(passes.deltas, passes.columns, strict=True)):
                weight = tensors[f"layers.{layer}.weight"]
                outputs, inputs, *sides = weight.shape
                rows = delta.permute(0, 2, 3, 1).reshape(-1, outputs)
                product = rows.T @ columns.view(len(rows), -1)
                weight.grad += product.view(outputs, *sides, inputs).permute(0, 3, 1, 2)
                ends = rows.view(-1, 3, len(rows) // len(delta) * outputs)[:, :2]
                tensors[f"layers.{layer}.bias"].grad += ends.sum(dim=(0, 1)).view(-1, outputs).sum(dim=0)
            last = passes.last.sum(dim=0)
            tensors["output.weight"].grad += last[0] - last[1] + last[2]
        for tensor in tensors.values():
            tensor.grad /= batch.units
        adam.step()

    return step


def part_of(batch: CriticBatch, rows: slice) -> CriticBatch:
    return CriticBatch(batch.real[rows], batch.fake[rows], batch.mix[rows], batch.present[rows])


def private_step(critic: TableCritic | ImageCritic, *, vmap: bool, noise: bool) -> Step:
    """The private step as a training makes it: clip in two groups, add up, noise, divide, Adam."""
    adam, randomness = make_adam(critic), SecureRandom()
    engine = choose_engine(critic, rows_per_unit=1, workspace=Workspace())
    if vmap:
        block = BLOCK_ROWS["vmap"] if isinstance(critic, TableCritic) else UNITS_AT_ONCE
        engine = GradientEngine(critic, "vmap", block, 1, Workspace())
    tensors = list(critic.parameters())
    is_bias = [tensor.dim() == 1 for tensor in tensors]
    groups = tuple(tuple(m for m, bias in enumerate(is_bias) if bias is wanted) for wanted in (False, True))

    def blocks(batch: CriticBatch) -> Iterator[PerUnitGradients]:
        for start in range(0, batch.units, engine.units_per_block):
            yield engine.gradients(part_of(batch, slice(start, start + engine.units_per_block)), LOSS)

    @torch.no_grad()
    def step(batch: CriticBatch) -> None:
        clipped = clip_and_sum(
            blocks(batch),
            groups=groups,
            clip_norms=(0.1, 0.1),
            shapes=[tensor.shape for tensor in tensors],
            bounds=engine.bounds(units=2 * batch.units + 200, expected_units=batch.units),
            device=batch.real.device,
        )
        values = clipped.sum.values
        if noise:
            values = release(clipped.sum, noise_multiplier=1.0, randomness=randomness)
        for tensor, value in zip(tensors, values, strict=True):
            tensor.grad = value.to(torch.float32) / batch.units
        adam.step()

    return step
