"""The types of answers are those of the library."""

from __future__ import annotations

import importlib.util
import json
import types
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from conftest import REPOSITORY

import runvault
from runvault import Vault, _native
from runvault import _types as t


def generator() -> Any:
    path = Path(__file__).parents[1] / "generate_types.py"
    spec = importlib.util.spec_from_file_location("generate_types", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_types_are_generated_from_the_document_of_the_operations() -> None:
    api = (REPOSITORY / "docs/api.json").read_text(encoding="utf-8")
    assert json.loads(api) == json.loads(_native.api()), "docs/api.json is not that of this build"
    package = Path(runvault.__file__).parent
    for file, text in generator().generated(api).items():
        assert (package / file).read_text(encoding="utf-8") == text, f"run generate_types.py to write {file}"


def conforms(value: Any, hint: Any, where: str) -> list[str]:
    """Returns where a value is not of a type."""
    if isinstance(hint, str):
        return conforms(value, eval(hint, vars(t)), where)
    if hint is Any:
        return []
    origin = get_origin(hint)
    if origin is NotRequired:
        return conforms(value, get_args(hint)[0], where)
    if origin in (Union, types.UnionType):
        options = [conforms(value, one, where) for one in get_args(hint)]
        return [] if [] in options else min(options, key=len)
    if origin is Literal:
        return [] if value in get_args(hint) else [f"{where}: {value!r} is not one of {get_args(hint)}"]
    if origin is list:
        if not isinstance(value, list):
            return [f"{where}: not a list"]
        return [wrong for n, item in enumerate(value) for wrong in conforms(item, get_args(hint)[0], f"{where}[{n}]")]
    if origin is dict:
        return [wrong for key, item in value.items() for wrong in conforms(item, get_args(hint)[1], f"{where}.{key}")]
    if is_typeddict(hint):
        if not isinstance(value, dict):
            return [f"{where}: not an object"]
        members = get_type_hints(hint, vars(t), include_extras=True)
        required = {name for name, kind in members.items() if get_origin(kind) is not NotRequired}
        wrong = [f"{where}: {name} is missing" for name in required - set(value)]
        wrong += [f"{where}: {name} is not known" for name in set(value) - set(members)]
        known = set(value) & set(members)
        return wrong + [one for name in known for one in conforms(value[name], members[name], f"{where}.{name}")]
    fits = isinstance(value, int | float) if hint is float else isinstance(value, hint)
    return [] if fits else [f"{where}: {value!r} is not {hint}"]


def test_answers_have_the_types_that_are_stated(vault: Vault) -> None:
    vault.build_index()
    session, run = vault.resolve("4df877dec7f4"), vault.resolve("3941d389b337")
    details: list[t.Detail] = ["attributes", "captures", "annotations"]
    requests: list[tuple[str, Any, Any]] = [
        ("find", {"details": details}, t.FindAnswer),
        ("list", {"details": details}, t.ListAnswer),
        ("links", {"artifact": session, "depth": 3}, t.LinksAnswer),
        ("responses", {"artifact": run}, t.ResponsesAnswer),
        ("show", {"artifact": session}, t.ShowAnswer),
        ("stats", {}, t.StatsAnswer),
        ("journal", {}, t.JournalAnswer),
        ("rules", {}, t.RulesAnswer),
        ("search", {"words": "export"}, t.SearchAnswer),
        ("resolve", {"text": "latest"}, t.ResolveAnswer),
        ("captures", {"artifact": session}, t.CapturesAnswer),
    ]
    for name, request, hint in requests:
        try:
            answer = vault.run(name, request)  # type: ignore[call-overload]
        except runvault.InvalidError as error:
            pytest.fail(f"{name}: {error}")
        assert conforms(answer, hint, name) == []
    assert conforms(vault.add(b"{}")[0], t.AddedDocument, "add") == []
    assert conforms({"hits": 1}, t.FindAnswer, "wrong") != []


def test_there_is_an_overload_for_every_operation() -> None:
    from typing import get_overloads

    document = json.loads(_native.api())
    assert len(get_overloads(Vault.run)) == len(document["paths"])
