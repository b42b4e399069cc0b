"""What a data scientist would sample with: SDV's Gaussian copula, fitted to the same table. Runs where only SDV is.

python sample_sdv.py TABLE.csv ROWS
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings

import pandas as pd


def main() -> None:
    path, rows = sys.argv[1], int(sys.argv[2])
    warnings.simplefilter("ignore")
    from sdv.metadata import Metadata
    from sdv.single_table import GaussianCopulaSynthesizer

    real = pd.read_csv(path)
    synthesizer = GaussianCopulaSynthesizer(Metadata.detect_from_dataframes({"table": real}, infer_keys=None))
    synthesizer.fit(real)
    synthesizer.sample(100)
    began = time.perf_counter()
    sample = synthesizer.sample(rows)
    drawn = time.perf_counter() - began
    sample.to_csv("/dev/null", index=False)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "drawn_seconds": drawn, "memory_bytes": memory, "rows": len(sample)}))


if __name__ == "__main__":
    main()
