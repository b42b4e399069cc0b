"""What one would write with pandas: read the file, check it against the schema. Runs where only pandas is.

python ingest_pandas.py TABLE SCHEMA.json
"""

from __future__ import annotations

import json
import resource
import sys
import time

import pandas as pd


def main() -> None:
    path, schema_path = sys.argv[1:]
    with open(schema_path, encoding="utf-8") as file:  # noqa: PTH123 - nothing of the project's style matters here
        fields = json.load(file)["fields"]
    began, cpu_began = time.perf_counter(), time.process_time()
    table = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
    problems = 0
    for field in fields:
        column, constraints = table[field["name"]], field["constraints"]
        problems += int(column.isna().sum())
        if field["type"] == "integer":
            if not pd.api.types.is_integer_dtype(column):
                raise SystemExit(f"{field['name']} does not hold integers")
            problems += int((~column.between(constraints["minimum"], constraints["maximum"])).sum())
        else:
            problems += int((~column.isin(constraints["enum"])).sum())
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answer = {"seconds": seconds, "cpu_seconds": cpu_seconds, "memory_bytes": memory}
    print(json.dumps({**answer, "rows": len(table), "problems": problems}))


if __name__ == "__main__":
    main()
