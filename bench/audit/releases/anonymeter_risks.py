"""Run by the interpreter of an environment that has Anonymeter: risks of synthetic rows, as JSON. Imports nothing of the project.

python anonymeter_risks.py real.csv synthetic.csv held_out.csv secret attacks
"""

import json
import sys
import warnings

import numpy as np
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator


def main() -> None:
    real, synthetic, held_out = (pd.read_csv(path) for path in sys.argv[1:4])
    secret, attacks = sys.argv[4], int(sys.argv[5])
    np.random.seed(0)  # noqa: NPY002 - Anonymeter draws from numpy's global stream, too
    names = [name for name in real.columns if name != secret]
    halves = names[::2], names[1::2]
    found = {}
    for columns, mode in ((1, "univariate"), (4, "multivariate")):
        singling = SinglingOutEvaluator(ori=real, syn=synthetic, n_attacks=attacks, n_cols=columns, control=held_out)
        try:
            found[f"singling out, {mode}"] = risk(singling.evaluate(mode=mode))
        except RuntimeError as error:  # fewer queries than attacks
            found[f"singling out, {mode}"] = {"failed": str(error)[:200]}
    linking = LinkabilityEvaluator(
        ori=real, syn=synthetic, aux_cols=halves, n_attacks=attacks, n_neighbors=1, control=held_out
    )
    found["linkability"] = risk(linking.evaluate(n_jobs=1))
    guessing = InferenceEvaluator(
        ori=real, syn=synthetic, aux_cols=names, secret=secret, regression=False, n_attacks=attacks, control=held_out
    )
    found[f"inference of {secret}"] = risk(guessing.evaluate(n_jobs=1))
    print(json.dumps(found))


def risk(evaluator) -> dict:  # noqa: ANN001
    """Share of attacks that succeed more than on rows held out, and its interval."""
    found, results = evaluator.risk(confidence_level=0.95), evaluator.results()
    return {
        "risk": float(found.value),
        "interval": [float(end) for end in found.ci],
        "attack": float(results.attack_rate.value),
        "control": float(results.control_rate.value),
        "baseline": float(results.baseline_rate.value),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
