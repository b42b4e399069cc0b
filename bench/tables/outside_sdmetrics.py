"""Column shapes and pair trends of SDMetrics, in its own environment (see outside.py): `python outside_sdmetrics.py REQUEST.json`."""

import json
import sys
from pathlib import Path

import pandas as pd
from sdmetrics.reports.single_table import QualityReport

ask = json.loads(Path(sys.argv[1]).read_text())
real, made = (pd.read_parquet(ask[name]) for name in ("real", "made"))
report = QualityReport()
report.generate(real, made, {"columns": ask["columns"]}, verbose=False)
shapes, trends = (report.get_details(name) for name in ("Column Shapes", "Column Pair Trends"))
found = {
    "Column Shapes": float(shapes["Score"].mean()),
    "Column Pair Trends": float(trends["Score"].mean()),
    "columns": dict(zip(shapes["Column"], shapes["Score"].astype(float), strict=True)),
}
Path(ask["reply"]).write_text(json.dumps(found))
