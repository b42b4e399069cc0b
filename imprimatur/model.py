"""What every answer of the service is: a frozen class that is also a read-only mapping of the reply as it came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self

Json = dict[str, Any]
Readers = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True, eq=False)
class Model(Mapping[str, Any]):
    """One answer. Equal to any mapping that says the same."""

    raw: Json = field(repr=False)

    _read: ClassVar[Readers] = {}
    """How values of fields are read that are not kept as JSON has them."""

    @classmethod
    def of(cls, raw: Json, **more: Any) -> Self:
        """From a reply. A field that an older service does not send has its default."""
        values = {}
        for each in fields(cls):
            if each.name in raw:
                read = cls._read.get(each.name)
                value = raw[each.name]
                values[each.name] = value if read is None or value is None else read(value)
            elif (
                each.name not in more
                and each.name != "raw"
                and each.default is MISSING
                and each.default_factory is MISSING
            ):
                raise ValueError(f"the service's reply lacks {each.name!r}: it is of another version than this client")
        return cls(raw=raw, **(values | more))

    def __getitem__(self, name: str) -> Any:
        return self.raw[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)
