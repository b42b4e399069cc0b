"""Every example of docs/client.md, in order, against the real service."""

from __future__ import annotations

import re
from pathlib import Path

from imprimatur import Client

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
OF_ANOTHER_SERVICE = 'client = imprimatur.Client("http://127.0.0.1:8000", "imp_…")'


def test_the_examples_of_the_page_work(stack, api_key, tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRIMATUR_URL", stack.url)
    monkeypatch.setenv("IMPRIMATUR_API_KEY", api_key)
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 6
    assert examples[1].strip() == OF_ANOTHER_SERVICE
    with Client(stack.url, api_key) as client:
        names = {"client": client, "api_key": api_key}
        for example in examples[:1] + examples[2:]:
            exec(compile(example, str(PAGE), "exec"), names)
    assert names["frame"].shape == (10_000, 3)
    assert names["older"]["smoker"].to_list() == [True] * 500
    assert (tmp_path / "synthetic.parquet").is_file()
