"""What Opacus says to the critic's step of WGAN-GP, mode by mode, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from bench.environments import folder_with

PACKAGES = ["opacus==1.6.0", "opt_einsum==3.4.0"]

PROGRAM = """
import json, torch, torch.nn.functional as F
from opacus.grad_sample import GradSampleModule, GradSampleModuleExpandedWeights
from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping

def critic():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.LeakyReLU(0.2), torch.nn.Linear(8, 1))

def loss(model, real, fake, mix):
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(model(between).sum(), between, create_graph=True)
    return (10 * (slope.norm(dim=1) - 1) ** 2).mean() - model(real).mean() + model(fake).mean()

modes = {
    "hooks": lambda: GradSampleModule(critic(), loss_reduction="mean"),
    "functorch": lambda: GradSampleModule(critic(), loss_reduction="mean", force_functorch=True),
    "expanded weights": lambda: GradSampleModuleExpandedWeights(critic(), loss_reduction="mean"),
    "ghost clipping": lambda: GradSampleModuleFastGradientClipping(
        critic(), loss_reduction="mean", max_grad_norm=1.0, use_ghost_clipping=True),
}
said = {}
for name, make in modes.items():
    batch = torch.rand(4, 12), torch.rand(4, 12), torch.rand(4, 1)
    try:
        model = make()
        loss(model, *batch).backward()
        got = [getattr(p, "grad_sample", None) for p in model.parameters()]
        norms = getattr(model, "per_sample_gradient_norms", None)
        exact = critic()
        worst, wanted = 0.0, []
        for i in range(4):
            value = loss(exact, *(part[i : i + 1] for part in batch))
            wanted.append(torch.autograd.grad(value, list(exact.parameters()), materialize_grads=True))
        for k, g in enumerate(got[:-1]):
            true = torch.stack([row[k] for row in wanted])
            mine = torch.stack(g).sum(0) if isinstance(g, list) else g
            worst = max(worst, float((mine - true).norm() / true.norm()))
        said[name] = f"runs; its per-record gradients are off by {worst:.0%}"
    except Exception as error:
        said[name] = f"{type(error).__name__}: {str(error)[:90]}"
print(json.dumps(said))
"""


def opacus_lines() -> list[str]:
    """A table of modes and what they answer; one line where Opacus cannot be installed."""
    folder = folder_with("opacus", PACKAGES)
    if folder is None:
        return ["Opacus: skipped, it could not be installed here."]
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], check=False, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        return [f"{PACKAGES[0]}: skipped, it does not start: {done.stderr.strip().splitlines()[-1][:120]}"]
    said: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    lines = [f"{PACKAGES[0]} on a small perceptron with the same loss:", "", "| mode | answer |", "|---|---|"]
    return lines + [f"| {mode} | {answer} |".replace("\n", " ") for mode, answer in said.items()]
