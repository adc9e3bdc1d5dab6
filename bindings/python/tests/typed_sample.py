"""A program that uses the package, for `mypy --strict`: it is checked and not run."""

from __future__ import annotations

from typing import assert_type

from runvault import Gateway, Listing, RunvaultError, Vault, types


def labels(vault: Vault) -> dict[str, str]:
    found = vault.find(prompt="hello", details=["attributes"], limit=3)
    assert_type(found, Listing[types.FoundArtifact])
    kinds = {hit["core_hash"]: hit["kind"] for hit in found}
    assert_type(vault.list(), Listing[types.ListRow])
    assert_type(vault.get("latest"), bytes)
    assert_type(vault.run("stats", {}), types.StatsAnswer)
    assert_type(vault.links("latest")["edges"][0]["from"], int)
    assert_type(vault.replay("hello")["response"], str)
    assert_type(vault.add(b"{}")[0]["violations"], list[types.Violation])
    vault.find(order="newest")  # type: ignore[arg-type]
    vault.run("find", {"limit": "ten"})  # type: ignore[call-overload]
    return kinds


def record(path: str) -> str | None:
    try:
        with Vault.open(path) as vault, Gateway.start(vault, "record") as gateway:
            run = gateway.finish("name")
            return None if run is None else run["run_pack"]
    except RunvaultError as error:
        return error.kind
