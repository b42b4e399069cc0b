"""What a run leaves: enough to write the published ZIP and the certificate, and nothing of the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

    from service.domain.image_schema import DeclaredSchema, ImageSchema
    from service.domain.table_schema import TableSchema
    from workers.encoding.table import TableDomain


@dataclass(frozen=True, kw_only=True)
class Released(ABC):
    """What a run made. It may be published only if `is_private`."""

    is_private: bool
    engine: str
    """How gradients were found, or that there were none; certificates name it."""
    device: str = "cpu"
    """Where it was made."""
    rows_per_unit: float | None = None
    """Mean rows or images of a unit, where that was charged."""
    choice: Mapping[str, Any] | None = None
    """Which of several candidates it is, where that was charged; certificates name it."""
    declares: Mapping[str, Mapping[str, Any]] | None = None
    """What the dataset's declaration says of these columns from now on (`service.domain.open_columns.closed`)."""

    @abstractmethod
    def files(self, *, schema: Any, certificate: Mapping[str, Any], order: Mapping[str, Any]) -> dict[str, bytes]:
        """What is published beside the certificate, which signs these files and is quoted in one of them: unsigned here."""


@dataclass(frozen=True, kw_only=True)
class TableRelease(Released):
    """A generator of rows: its forward(noise, condition | None) returns the logits of all columns."""

    generator: nn.Module
    """In eval mode, on the CPU."""
    domain: TableDomain
    """The columns whose logits the generator gives."""
    noise_dimension: int
    condition_index: int | None
    condition_frequencies: tuple[float, ...] | None

    def files(
        self, *, schema: TableSchema, certificate: Mapping[str, Any], order: Mapping[str, Any]
    ) -> dict[str, bytes]:
        """See `workers.generators.table.bundle`."""
        from workers.generators.table.bundle import table_files  # noqa: PLC0415 - ONNX is loaded when it is needed

        return table_files(
            self.generator,
            self.domain,
            noise_dimension=self.noise_dimension,
            condition_index=self.condition_index,
            condition_frequencies=self.condition_frequencies,
            schema=schema,
            certificate=certificate,
            order=order,
        )


@dataclass(frozen=True, kw_only=True)
class ImageRelease(Released):
    """A generator of images: its forward(noise, component) returns images between 0 and 1."""

    generator: nn.Module
    noise_dimension: int
    component_labels: tuple[int, ...]
    """The class of everything that the generator may be asked for,"""
    component_frequencies: tuple[float, ...]
    """and how frequent it is."""
    one_a_run: bool
    """Whether all images of one call are of one component."""
    copies: bool = False
    """Whether each component is one of the private images, noisy; classes are then not released."""

    def files(
        self, *, schema: ImageSchema, certificate: Mapping[str, Any], order: Mapping[str, Any]
    ) -> dict[str, bytes]:
        """See `workers.generators.image.bundle`."""
        from workers.generators.image.bundle import image_files  # noqa: PLC0415 - as above
        from workers.generators.image.card import copies_card  # noqa: PLC0415 - beside it

        if self.copies:
            schema = schema.model_copy(update={"classes": None})
        files = image_files(
            self.generator,
            schema,
            noise_dimension=self.noise_dimension,
            component_labels=self.component_labels,
            component_frequencies=self.component_frequencies,
            one_a_run=self.one_a_run,
            certificate=certificate,
            order=order,
        )
        if self.copies:
            files["MODEL_CARD.md"] = copies_card(schema=schema, certificate=certificate, order=order).encode()
        return files


@dataclass(frozen=True, kw_only=True)
class AnswersRelease(Released):
    """Numbers instead of a generator, such as noisy answers to queries. Nothing can be drawn from it."""

    answers: Mapping[str, Any]
    """JSON values, all of them noisy or public; floats are finite."""

    def files(
        self, *, schema: DeclaredSchema, certificate: Mapping[str, Any], order: Mapping[str, Any]
    ) -> dict[str, bytes]:
        """See `workers.generators.answers`."""
        from workers.generators.answers import answers_files  # noqa: PLC0415 - beside the others

        return answers_files(self.answers, schema, certificate=certificate, order=order)
