"""A suite that notices when the guarantee is broken: a sample of `python -m bench.planted`, and that all of it fits.

The whole list takes some minutes (`make planted`); its last table is in bench/results and in docs/pitfalls.md.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from bench.planted.bugs import BUGS
from bench.planted.harness import ROOT, Bug, copy_tree, imports_from, planted, run_tests, try_bug

QUICK = "one step more than priced"
SAMPLE = (
    QUICK,
    "noise divided by the number of groups",
    "label counts of a unit with many rows have the noise of one",
    "price rounded down",
    "seed fixed in the stream",
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = copy_tree(tmp_path_factory.mktemp("planted"))
    assert str(ROOT) + "/" not in imports_from(copy)
    return copy


@pytest.mark.parametrize(
    "name", [name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SAMPLE]
)
def test_a_planted_bug_is_caught(name: str, tree: Path) -> None:
    (bug,) = (bug for bug in BUGS if bug.name == name)
    outcome = try_bug(tree, bug)
    assert outcome.caught_by is not None, outcome.output[-3_000:]
    assert outcome.caught_by.split("::")[0] in {test.split("::")[0] for test in bug.tests}


@pytest.mark.parametrize(
    "names", [pytest.param((QUICK,), id="quick"), pytest.param(SAMPLE, id="sample", marks=pytest.mark.slow)]
)
def test_without_a_bug_the_same_tests_pass(names: tuple[str, ...], tree: Path) -> None:
    outcome = run_tests(tree, sorted({test for bug in BUGS if bug.name in names for test in bug.tests}))
    assert outcome.caught_by is None
    assert " passed" in outcome.output


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_bug_still_fits_the_source_and_its_tests_exist(bug: Bug) -> None:
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _, _ in bug.edits}
    for file, old, new in bug.edits:
        assert old != new
        texts[file] = planted(texts[file], old, new, file)
    for file, text in texts.items():
        if file.endswith(".py"):
            ast.parse(text, file)
    for test in bug.tests:
        file, _, name = test.partition("::")
        function = name.partition("[")[0]
        assert re.search(
            rf"^def {function}\(" if name else "^def test_", (ROOT / file).read_text("utf-8"), re.MULTILINE
        )


def test_there_are_enough_and_all_differ() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 20
    assert len({bug.edits for bug in BUGS}) == len(BUGS)
