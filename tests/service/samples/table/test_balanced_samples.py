"""Rows of a mixture are chosen between two draws: tables of a sample come closer to the generator's, rows stay as likely as they were."""

import io
import itertools
import json
import zipfile

import numpy as np
import pytest
import torch
from scipy import stats
from tiny_generators import domain_of

import service.samples.table.balancing
import service.samples.table.sampler
from service.domain.table_schema import parse_table_schema
from service.samples.table.balancing import Balancing, balance
from service.samples.table.dealing import deal
from service.samples.table.sampler import TableSampler
from tests.bundles import build_bundle
from workers.networks.mixture import MixtureGenerator
from workers.networks.table import TableGenerator

SCHEMA = {
    "fields": [
        {"name": "class", "type": "string", "constraints": {"enum": ["a", "b", "c"], "required": True}},
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue", "grey"]}},
        {"name": "size", "type": "integer", "constraints": {"enum": [1, 2, 3, 4, 5, 6], "required": True}},
        {"name": "fits", "type": "boolean", "constraints": {"required": True}},
    ]
}
FREQUENCIES = [0.6, 0.3, 0.1]
COMPONENTS = 64
NEVER = -60.0
BLOCKS = [slice(*ends) for ends in itertools.pairwise(np.cumsum([0, *domain_of(SCHEMA).widths]))]


def files_of(generator, *, condition_index=0, schema=SCHEMA, noise_dimension=6):
    bundle = build_bundle(
        generator.eval(),
        domain_of(schema),
        noise_dimension=noise_dimension,
        condition_index=condition_index,
        condition_frequencies=None if condition_index is None else FREQUENCIES,
        schema=parse_table_schema(schema),
        certificate={},
        order={},
    )
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return json.loads(archive.read("config.json")), archive.read("generator.onnx")


@pytest.fixture(scope="module")
def logits():
    """(classes, components, cells), of which no component has all: red never is of size 6, in none of them."""
    random = torch.Generator().manual_seed(5)
    found = 1.5 * torch.randn(3, COMPONENTS, sum(domain_of(SCHEMA).widths), generator=random)
    sixth, red = 3 + 5 + 5, 3
    found[:, ::2, sixth], found[:, 1::2, red] = NEVER, NEVER
    return found


@pytest.fixture(scope="module")
def mixture(logits):
    return files_of(MixtureGenerator(logits))


@pytest.fixture(scope="module")
def sampler(mixture):
    return TableSampler.from_files(*mixture)


@pytest.fixture(scope="module")
def expected(logits):
    """(cells, cells) chances of each two values in a row, by the definition of the mixture."""
    tables = np.zeros((logits.shape[2],) * 2)
    for number, (frequency, components) in enumerate(zip(FREQUENCIES, logits.double(), strict=True)):
        parts = [part.softmax(dim=1) for part in components.split(list(domain_of(SCHEMA).widths), dim=1)]
        parts[0] = torch.eye(3, dtype=torch.double)[number].expand(len(components), -1)
        cells = torch.cat(parts, dim=1)
        of_class = cells.T @ cells / len(cells)
        for block in BLOCKS:  # a column beside itself
            of_class[block, block] = torch.diag(cells[:, block].mean(dim=0))
        tables += frequency * of_class.numpy()
    return tables


@pytest.fixture
def unbalanced(monkeypatch):
    def switch():
        monkeypatch.setattr(service.samples.table.balancing, "MOST_BALANCED_CELLS", 0)

    return switch


def codes(sampler, rows, *, seed, **options):
    chunks = list(sampler.draws(rows, seed=seed, **options))
    return np.concatenate([np.stack(chunk, axis=1) for chunk in chunks]).astype(int)


def tables_of(drawn):
    """(cells, cells) rows with each two values."""
    widths = domain_of(SCHEMA).widths
    one_hot = np.concatenate([np.eye(width)[own] for width, own in zip(widths, drawn.T, strict=True)], axis=1)
    return one_hot.T @ one_hot


def distances(drawn, expected):
    """Mean total variation of one- and of two-way tables."""
    off = np.abs(tables_of(drawn) / len(drawn) - expected)
    singles = [off[block, block].sum() / 2 for block in BLOCKS]
    pairs = [off[one, other].sum() / 2 for one, other in itertools.combinations(BLOCKS, 2)]
    return np.mean(singles), np.mean(pairs)


@pytest.mark.parametrize("rows", [300, 4_000, 40_000])
def test_tables_of_a_sample_are_closer_to_the_mixture(sampler, expected, unbalanced, rows):
    balanced = np.mean([distances(codes(sampler, rows, seed=seed), expected) for seed in range(5)], axis=0)
    unbalanced()
    plain = np.mean([distances(codes(sampler, rows, seed=seed), expected) for seed in range(5)], axis=0)
    assert (balanced < 0.4 * plain).all()


def test_values_are_as_likely_as_they_were_and_those_never_together_stay_apart(sampler, expected):
    rows, seeds = 2_000, 150
    mean = np.mean([tables_of(codes(sampler, rows, seed=seed)) for seed in range(seeds)], axis=0)
    wanted = rows * expected
    red, sixth = 3, 3 + 5 + 5
    assert mean[red, sixth] == 0
    often = wanted >= 1
    assert np.abs(mean[often] / wanted[often] - 1).max() < 0.05
    assert np.abs(mean - wanted)[~often].max() < 0.15


def test_a_row_s_values_are_as_likely_as_its_component_makes_them(sampler, logits, monkeypatch):
    """Not only the tables: without each row's own component, they could be right and the relations of three columns wrong."""
    components = []

    def remember(*arguments):
        dealt = deal(*arguments)
        components.append(dealt.condition * COMPONENTS + (COMPONENTS - 1 - dealt.signs))
        return dealt

    monkeypatch.setattr(service.samples.table.sampler, "deal", remember)
    drawn = np.concatenate([codes(sampler, 3_000, seed=seed) for seed in range(60)])
    components = np.concatenate(components)
    colours = logits[:, :, 3:8].softmax(dim=2).reshape(-1, 5).double().numpy()
    counts = np.zeros_like(colours)
    np.add.at(counts, (components, drawn[:, 1]), 1)
    wanted = counts.sum(axis=1, keepdims=True) * colours
    some = wanted > 50
    # Rows of a component are spread evenly over its cells, so that counts vary less than those of dice, by which this is judged.
    assert ((counts - wanted)[some] ** 2 / wanted[some]).mean() < 1.2


@pytest.mark.parametrize("place", [0, 39])
def test_a_row_is_an_independent_draw_where_the_fewest_rows_are_balanced(sampler, expected, place):
    drawn = np.array([codes(sampler, 40, seed=seed)[place] for seed in range(2_000)])
    for column, start in ((1, 3), (2, 8)):
        chances = np.diag(expected)[start : start + (5, 6)[column - 1]]
        counts = np.bincount(drawn[:, column], minlength=len(chances))
        assert stats.chisquare(counts, chances * len(drawn)).pvalue > 1e-4


def test_a_given_class_has_its_own_tables(sampler, logits, unbalanced):
    colours = logits[1, :, 3:8].double().softmax(dim=1).mean(dim=0).numpy()

    def off():
        drawn = [codes(sampler, 5_000, seed=seed, where={"class": "b"}) for seed in range(5)]
        assert all(set(sample[:, 0]) == {1} for sample in drawn)
        return np.mean([np.abs(np.bincount(sample[:, 1], minlength=5) / 5_000 - colours).sum() for sample in drawn])

    balanced = off()
    assert balanced < 0.001
    unbalanced()
    assert balanced < 0.5 * off()


def test_other_conditions_reject_balanced_rows(sampler):
    drawn = codes(sampler, 3_000, seed=1, where={"size": 2})
    assert len(drawn) == 3_000
    assert set(drawn[:, 2]) == {1}


def test_a_network_s_rows_are_not_balanced():
    torch.manual_seed(0)
    generator = TableGenerator(domain_of(SCHEMA).widths, noise_dimension=6, hidden=(16,), condition_index=0)
    assert TableSampler.from_files(*files_of(generator))._balancing.applies(1_000) is False


def test_an_earlier_bundle_draws_the_rows_it_drew(mixture, sampler, unbalanced):
    config, onnx_bytes = mixture
    earlier = {name: value for name, value in config.items() if name != "generator"}
    drawn = codes(TableSampler.from_files(earlier, onnx_bytes), 1_000, seed=3)
    assert (drawn != codes(sampler, 1_000, seed=3)).any()
    unbalanced()
    assert (drawn == codes(sampler, 1_000, seed=3)).all()


@pytest.mark.parametrize(("rows", "is_balanced"), [(31, False), (32, True), (1_000_000, True), (1_000_001, False)])
def test_samples_of_some_size_are_balanced(sampler, rows, is_balanced):
    assert sampler._balancing.applies(rows) is is_balanced


def test_a_long_sample_begins_with_small_blocks(sampler):
    """The first row of a block is there when all are."""
    sizes = []
    choose = Balancing.choose

    def remember(self, block, *others, **options):
        sizes.append(block.rows)
        return choose(self, block, *others, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Balancing, "choose", remember)
        for rows in (100_000, 300_000):
            assert sum(len(chunk[0]) for chunk in sampler.draws(rows, seed=1)) == rows
    assert sizes[:4] == [25_000] * 4
    assert sizes[4:7] == [4_096, 8_192, 16_384]
    assert 16_384 < min(sizes[7:]) == max(sizes[7:]) <= 32_768


def test_a_sample_whose_client_has_gone_is_given_up(sampler, monkeypatch):
    """Threads that draw ahead do so a block at a time: a client who hangs up must not leave them seconds of work."""
    ahead = []

    def each(draw, parts):
        first = next(parts)
        ahead.extend([draw, next(parts)])
        yield draw(first)

    draws = sampler.draws(60_000, seed=1, each=each)
    next(draws)
    draw, part = ahead
    assert sum(chunk.rows.stop - chunk.rows.start for chunk in part) == 30_000
    monkeypatch.setattr(
        service.samples.table.balancing, "balance", lambda *_: pytest.fail("a block was balanced that is not wanted")
    )
    del draws
    assert draw(part) == []


@pytest.mark.parametrize("rows", [100, 70_000])
def test_chunks_of_balanced_rows_may_be_drawn_in_any_order(sampler, rows):
    def backwards(draw, chunks):
        return reversed([draw(chunk) for chunk in reversed(list(chunks))])

    assert (codes(sampler, rows, seed=3) == codes(sampler, rows, seed=3, each=backwards)).all()


def test_a_single_column_is_balanced_too():
    schema = {"fields": [SCHEMA["fields"][2]]}
    logits = torch.randn(1, COMPONENTS, 6, generator=torch.Generator().manual_seed(1))
    files = files_of(MixtureGenerator(logits), condition_index=None, schema=schema)
    chances = logits[0].softmax(dim=1).mean(dim=0).numpy()
    counts = np.bincount(codes(TableSampler.from_files(*files), 1_000, seed=0)[:, 0], minlength=6)
    assert np.abs(counts - 1_000 * chances).max() < 3


def test_what_is_less_than_a_row_off_is_let_be():
    """Else a row alone, and every rare cell, would lean towards what is likelier."""
    chances = np.array([0.9, 0.1, 0.2, 0.8])
    expected = np.concatenate([np.outer(chances, chances), chances[:, None]], axis=1).astype(np.float32)
    rare, likely = np.array([[1], [2]]), np.array([[0], [3]])
    balance(rare, likely, expected, 1)
    assert rare.tolist() == [[1], [2]]
