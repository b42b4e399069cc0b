"""Asks three independent accountants what our settings cost, and commits their answers for the tests to compare with.

    python -m bench.oracles            # all three, each in a virtual environment of its own under .venv/oracles
    python -m bench.oracles prv        # one of prv, autodp, opacus

Writes tests/privacy/oracles/{settings,prv,autodp,opacus}.json. None of the three is a dependency of the project: they
pull in matplotlib, torch or old APIs of scipy, and the first two are no longer maintained. The tests compute our side
live and read theirs from these files, so a change of our accounting turns them red without any of the three installed.

This one file plays both parts: in the project's environment it writes the settings and starts itself again with the
tool's own interpreter, where nothing of the project can be imported (`--answer`).
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import itertools
import json
import math
import platform
import subprocess
import sys
import time
import venv
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ORACLES = HERE.parent / "tests" / "privacy" / "oracles"
ENVIRONMENTS = HERE.parent / ".venv" / "oracles"

TOOLS = {
    "prv": ("prv-accountant", ["prv-accountant==0.2.0"]),
    "autodp": ("autodp", ["autodp==0.2.3.1"]),
    "opacus": ("opacus", ["torch==2.13.0", "opacus==1.6.0"]),
}
"""Distribution whose version is recorded, and what is installed."""

ORDERS = (2, 3, 5, 8, 16, 32, 64)
"""Rényi orders that all tools compute as finite sums."""

GRID = tuple(
    itertools.product(
        (1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.25, 0.6, 1.0),
        (0.5, 0.8, 1.0, 1.5, 3.0, 10.0, 50.0),
        (1, 10, 100, 1_000, 10_000, 100_000),
    )
)
DELTAS = (1e-5, 1e-6, 1e-8)
SMALLEST_EPSILON, LARGEST_EPSILON = 0.005, 120.0
"""By Rényi divergence; outside, the grid asks for nothing anybody would publish, and the extremes below take over."""

EXTREMES = (
    (1e-6, 0.7, 1_000_000, 1e-6),
    (1e-4, 1.0, 1_000_000, 1e-7),
    (1e-5, 50.0, 1_000_000, 1e-6),
    (1e-6, 1.0, 1, 1e-9),
    (1e-3, 20.0, 10, 1e-6),
    (1e-3, 200.0, 1_000_000, 1e-8),
    (0.01, 0.3, 100, 1e-5),
    (0.01, 1_000.0, 1_000_000, 1e-6),
    (0.9999, 4.0, 100, 1e-6),
    (0.999, 30.0, 10_000, 1e-10),
    (0.5, 1.0, 3, 1e-10),
    (0.02, 0.9, 3_000, 1e-11),
    (1.0, 0.1, 1, 1e-6),
    (1.0, 0.05, 1, 1e-6),
    (1.0, 10_000.0, 1, 1e-9),
    (1.0, 1_000.0, 1_000_000, 1e-6),
    (1.0, 100.0, 1_000_000, 1e-5),
    (1.0, 1e6, 1_000_000, 1e-12),
    (64 / 60_000, 10.0, 60_000, 1e-5),
    (256 / 60_000, 1.1, 14_062, 1e-5),
    (4096 / 32_561, 2.0, 2_000, 1e-6),
)
"""Tiny and huge ones; the last three are the paper's MNIST run, Abadi et al.'s, and a table of the size of Adult."""

SCHEDULES = (
    ("exponential", {"steps": 2_000, "noise_decay": {"kind": "exponential", "rate": 0.05}}, 3.0),
    ("periodic", {"steps": 1_500, "noise_decay": {"kind": "periodic", "factor": 0.8, "period_epochs": 5}}, 2.5),
    ("polynomial", {"steps": 900, "noise_decay": {"kind": "polynomial", "end_ratio": 0.4, "power": 2.0}}, 4.0),
    ("warm-up", {"steps": 800, "noise_decay": {"kind": "exponential", "rate": 0.1, "warm_up_epochs": 4}}, 2.0),
    ("constant", {"steps": 1_000, "noise_decay": {"kind": "constant"}, "thresholds": {"kind": "fixed"}}, 1.5),
    (
        "sparse histograms",
        {"steps": 600, "thresholds": {"kind": "adaptive", "every_steps": 7, "noise_ratio": 2.0}},
        2.0,
    ),
    ("labels", {"steps": 500, "condition_on": "label"}, 3.0),
    ("full batch", {"steps": 20, "sampling_probability": 1.0}, 12.0),
)
"""Name, knobs of an IDPGAN order, σ_0. Sampling probability 0.02 unless the knobs say otherwise."""

SCHEDULE_DELTA = 1e-6
LABEL_NOISE_MULTIPLIER = 8.0


def in_runs(events: Any) -> list[list[float]]:
    """Sampling probability, noise multiplier and length of each run of like steps, in the order in which they happen."""
    runs: list[list[float]] = []
    for event in events:
        interleaved = event.kind == "interleaved_steps"
        steps = [(event.step(number), 1) for number in range(event.count)] if interleaved else [(event, event.count)]
        for one, count in steps:
            if interleaved and runs and runs[-1][:2] == [one.sampling_probability, one.joint_noise_multiplier]:
                runs[-1][2] += count
            else:
                runs.append([one.sampling_probability, one.joint_noise_multiplier, count])
    return runs


# -- in the project's environment -----------------------------------------------------------------------------------


def make_settings() -> dict:
    """What everybody is asked; prices of whole orders come as the lists our code makes of them."""
    from service.methods.idpgan.order import IdpganOrder
    from service.methods.idpgan.price import idpgan_events

    deltas = itertools.cycle(DELTAS)
    settings = [(*point, next(deltas)) for point in GRID if _worth_asking(*point)]
    schedules = []
    for name, knobs, noise_multiplier in SCHEDULES:
        order = IdpganOrder.model_validate({"method": "idpgan", "epsilon": 1.0, "sampling_probability": 0.02, **knobs})
        events = idpgan_events(order, noise_multiplier=noise_multiplier, label_noise_multiplier=LABEL_NOISE_MULTIPLIER)
        schedules.append(
            {
                "name": name,
                "knobs": {"sampling_probability": 0.02, **knobs},
                "noise_multiplier": noise_multiplier,
                "label_noise_multiplier": LABEL_NOISE_MULTIPLIER,
                "delta": SCHEDULE_DELTA,
                "events": in_runs(events),
            }
        )
    return {"orders": list(ORDERS), "settings": [*settings, *EXTREMES], "schedules": schedules}


def _worth_asking(q: float, noise_multiplier: float, steps: int) -> bool:
    from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    gaussian = GaussianDpEvent(noise_multiplier)
    one = gaussian if q == 1.0 else PoissonSampledDpEvent(q, gaussian)
    accountant = RdpAccountant(range(2, 256), NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(SelfComposedDpEvent(one, steps))
    return SMALLEST_EPSILON <= accountant.get_epsilon(1e-6) <= LARGEST_EPSILON


def ask(tool: str) -> None:
    """Install the tool in its own environment and let it answer."""
    folder = ENVIRONMENTS / tool
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"{tool}: installing {' '.join(TOOLS[tool][1])}", flush=True)
        venv.create(folder, with_pip=True)
        pip = [python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS[tool][1]]
        subprocess.run(pip, check=True)
    began = time.monotonic()
    subprocess.run([python, "-I", __file__, "--answer", tool], check=True)
    print(f"{tool}: answered in {time.monotonic() - began:.0f} s", flush=True)


# -- in the tool's environment --------------------------------------------------------------------------------------


def answer(tool: str) -> None:
    """Read the settings, write one answer for each; what a tool cannot compute becomes its error in words."""
    warnings.simplefilter("ignore")
    asked = json.loads((ORACLES / "settings.json").read_text(encoding="utf-8"))
    one, many = {"prv": (prv_setting, prv_events), "autodp": (autodp_setting, None), "opacus": (opacus_setting, None)}[
        tool
    ]
    answers = {
        "tool": TOOLS[tool][0],
        "version": importlib.metadata.version(TOOLS[tool][0]),
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "scipy": importlib.metadata.version("scipy"),
        "made_on": dt.datetime.now(dt.UTC).date().isoformat(),
        "settings": [_or_error(one, *setting, asked["orders"]) for setting in progress(asked["settings"])],
    }
    if many is not None:
        answers["schedules"] = [_or_error(many, s["events"], s["delta"]) for s in asked["schedules"]]
    write(tool, answers)


def progress(items: list) -> Iterator:
    for number, item in enumerate(items):
        if number % 50 == 0:
            print(f"  {number} of {len(items)}", flush=True)
        yield item


def _or_error(compute: Callable[..., dict], *arguments: object) -> dict:
    try:
        return compute(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever the tool raises is its answer
        return {"error": f"{type(error).__name__}: {error}"[:200]}


PRV_RELATIVE_ERROR = 0.01
PRV_SMALLEST_ERROR = 1e-4
PRV_LARGEST_GRID = 2**20
"""Points; where this is too few for 1 % the sandwich is as wide as it must be."""


def prv_setting(q: float, noise_multiplier: float, steps: int, delta: float, _orders: list[int]) -> dict:
    return prv_events([[q, noise_multiplier, steps]], delta)


def prv_events(events: list[list[float]], delta: float) -> dict:
    """Gopi, Lee, Wutschitz 2021: ε lies in [lower, upper]. Two rounds: a rough one, then 1 % of what it found."""
    from prv_accountant import PRVAccountant
    from prv_accountant.accountant import compute_safe_domain_size
    from prv_accountant.privacy_random_variables import GaussianMechanism, PoissonSubsampledGaussianMechanism

    pooled: dict[tuple[float, float], int] = {}
    for q, noise_multiplier, count in events:
        pooled[q, noise_multiplier] = pooled.get((q, noise_multiplier), 0) + int(count)
    variables = [
        GaussianMechanism(noise) if q == 1.0 else PoissonSubsampledGaussianMechanism(q, noise) for q, noise in pooled
    ]
    counts = list(pooled.values())
    delta_error = delta / 100.0
    root = math.sqrt(sum(counts) / 2.0 * math.log(12.0 / delta_error))
    epsilon_error, found = 0.1, (math.nan,) * 3
    for _ in range(2):
        domain = compute_safe_domain_size(variables, counts, epsilon_error, delta_error)
        epsilon_error = max(epsilon_error, 2.0 * domain * root / PRV_LARGEST_GRID)
        accountant = PRVAccountant(variables, epsilon_error, delta_error, max_self_compositions=counts)
        found = accountant.compute_epsilon(delta, counts)
        wanted = max(PRV_SMALLEST_ERROR, PRV_RELATIVE_ERROR * found[1])
        if wanted >= epsilon_error:
            break
        epsilon_error = wanted
    lower, estimate, upper = found
    return {"lower": lower, "estimate": estimate, "upper": upper}


def autodp_setting(q: float, noise_multiplier: float, steps: int, delta: float, orders: list[int]) -> dict:
    """Rényi divergences (Zhu & Wang 2019), the ε they imply, and for q = 1 the exact Gaussian (Balle & Wang 2018).

    Its characteristic functions (Zhu, Dong, Wang 2022) are broken in this version: they miss a parameter and call
    scipy.integrate.quadrature, which is gone.
    """
    from autodp.mechanism_zoo import ComposedGaussianMechanism, ExactGaussianMechanism, SubsampleGaussianMechanism

    if q == 1.0:
        mechanism = ComposedGaussianMechanism({"sigma": noise_multiplier, "coeff": steps})
        exact = float(ExactGaussianMechanism(sigma=noise_multiplier / math.sqrt(steps)).get_approxDP(delta))
    else:
        mechanism = SubsampleGaussianMechanism({"prob": q, "sigma": noise_multiplier, "coeff": steps})
        exact = None
    return {
        "renyi": [float(mechanism.RenyiDP(order)) for order in orders],
        "renyi_epsilon": float(mechanism.get_approxDP(delta)),
        "exact_epsilon": exact,
    }


def opacus_setting(q: float, noise_multiplier: float, steps: int, delta: float, orders: list[int]) -> dict:
    """Only its accountants: the Rényi divergences and the upper end of its PRV estimate."""
    from opacus.accountants import PRVAccountant
    from opacus.accountants.analysis import rdp

    divergences = rdp.compute_rdp(q=q, noise_multiplier=noise_multiplier, steps=steps, orders=orders)
    return {
        "renyi": [float(value) for value in divergences],
        **_or_error(_opacus_prv, PRVAccountant, q, noise_multiplier, steps, delta),
    }


def _opacus_prv(
    accountant_class: Callable[[], Any], q: float, noise_multiplier: float, steps: int, delta: float
) -> dict:
    if steps > 100_000 or q == 1.0:
        return {"error": "not asked: the grid would be too large, or there is no sampling"}
    accountant = accountant_class()
    accountant.history = [(noise_multiplier, q, steps)]
    return {"prv_upper": float(accountant.get_epsilon(delta=delta, eps_error=0.02, delta_error=delta / 100.0))}


def write(name: str, document: dict) -> None:
    """One setting a line, so that a change shows in a diff."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], (list, tuple, dict)):
            lines = ",\n".join("  " + json.dumps(item) for item in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n ]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    (ORACLES / f"{name}.json").write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--answer"]:
        answer(arguments[1])
        return
    ORACLES.mkdir(parents=True, exist_ok=True)
    write("settings", make_settings())
    for tool in arguments or TOOLS:
        ask(tool)


if __name__ == "__main__":
    main(sys.argv[1:])
