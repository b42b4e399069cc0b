"""A bill of materials (CycloneDX 1.6, JSON) of the service, its worker and what comes with them."""

from __future__ import annotations

import re
import uuid

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from imprimatur.version import VERSION
from supply.closure import ROOT, closure
from supply.images import images
from supply.licences import INSIDE, licence
from supply.locks import FOLDER

SHIPPED = ("service", "worker", "embedded")


def bill() -> str:
    """The bill as text. The same tree and the same pins give the same bill: it holds no time and no random number."""
    factory = LicenseFactory()
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"imprimatur-server {VERSION} {_pinned()}"))
    bom.metadata.timestamp = None
    root = _component("imprimatur-server", VERSION, factory, "Apache-2.0")
    bom.metadata.component = root
    parts = {}
    for part in SHIPPED:
        for name, package in closure(part).items():
            version = package.version.partition("+")[0]
            parts.setdefault(name, _component(name, version, factory, licence(package), hashes(name)))
    for component in parts.values():
        bom.components.add(component)
    for name, version in re.findall(
        r"^([a-z0-9-]+)==(\S+)", (FOLDER / "cuda.txt").read_text(encoding="utf-8"), re.MULTILINE
    ):
        bom.components.add(_component(name, version, factory, None, hashes(name), ComponentScope.OPTIONAL))
    for name, expression, where, _ in INSIDE:
        program, version = name.split()
        bom.components.add(
            Component(
                name=program.lower(),
                version=version,
                type=ComponentType.APPLICATION,
                licenses=[factory.make_from_string(expression)],
                description=f"{where}; the exact version is the wheel's",
                bom_ref=f"program:{program.lower()}",
            )
        )
    for image, digest in images().values():
        repository, _, tag = image.partition(":")
        bom.components.add(
            Component(
                name=repository,
                version=tag,
                type=ComponentType.CONTAINER,
                scope=ComponentScope.OPTIONAL,
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest.removeprefix("sha256:"))] if digest else [],
                bom_ref=f"image:{image}",
            )
        )
    bom.register_dependency(root, parts.values())
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def hashes(name: str) -> list[HashType]:
    """All files of the pinned version, as the lock files have them."""
    for file in ("development.txt", "torch.txt", "cuda.txt"):
        text = (FOLDER / file).read_text(encoding="utf-8")
        found = re.search(rf"^{re.escape(name)}==[^\n]*\n((?:    --hash[^\n]*\n?)+)", text, re.MULTILINE)
        if found:
            return [
                HashType(alg=HashAlgorithm.SHA_256, content=value) for value in re.findall(r"sha256:(\w+)", found[1])
            ]
    return []


def _component(
    name: str,
    version: str,
    factory: LicenseFactory,
    expression: str | None,
    hashed: list[HashType] | None = None,
    scope: ComponentScope = ComponentScope.REQUIRED,
) -> Component:
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        scope=scope,
        licenses=[factory.make_from_string(expression)] if expression else [],
        purl=PackageURL("pypi", name=name, version=version),
        hashes=hashed or [],
        bom_ref=f"{name}=={version}",
    )


def _pinned() -> str:
    return "".join((FOLDER / file).read_text(encoding="utf-8") for file in ("development.txt", "torch.txt"))[-4096:]


__all__ = ["ROOT", "bill", "hashes"]
