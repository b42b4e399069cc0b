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
    synthesizer.fit({"table": real})
    synthesizer.sample(100)
    began, cpu_began = time.perf_counter(), time.process_time()
    sample = synthesizer.sample(rows)
    sample = sample["table"] if isinstance(sample, dict) else sample
    sample.to_csv("/dev/null", index=False)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answer = {"seconds": seconds, "cpu_seconds": cpu_seconds, "memory_bytes": memory, "rows": len(sample)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
