"""Writes the types of requests and answers, and the operations, from docs/api.json.

Run it without arguments after docs/api.json has changed. The tests compare what it would write with what is there.
"""

import json
import keyword
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
API = HERE / "../../docs/api.json"
PACKAGE = HERE / "python/runvault"
GENERATED = '"""Generated from docs/api.json by generate_types.py."""\n'

Schema = dict[str, Any]
# The members of an object: its type, whether it is required, and its description.
Members = dict[str, tuple[str, bool, str]]


class Types:
    """The types of a document."""

    def __init__(self, schemas: dict[str, Schema]):
        self.schemas = schemas
        self.parts: list[str] = []
        # Names of types that are not objects, such as unions.
        self.aliases: dict[str, tuple[str, str]] = {}

    def resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def objects(self, schema: Schema) -> list[Members] | None:
        """Returns the members of every form of an object, or None if it is something else."""
        schema = self.resolved(schema)
        if "allOf" in schema:
            forms: list[Members] = [{}]
            for part in schema["allOf"]:
                further = self.optional(part) or self.objects(part)
                if further is None:
                    return None
                forms = [{**form, **more} for form in forms for more in further]
            return forms
        if "oneOf" in schema:
            forms = []
            for part in schema["oneOf"]:
                more_forms = self.objects(part)
                if more_forms is None:
                    return None
                forms += more_forms
            return forms
        if schema.get("type") != "object" or "properties" not in schema:
            return None
        required = schema.get("required", [])
        properties = schema["properties"].items()
        return [{name: (self.type_of(part), name in required, about(part)) for name, part in properties}]

    def optional(self, schema: Schema) -> list[Members] | None:
        """Returns the members of an object of which all or none are there, or None if it is something else."""
        parts = [part for part in schema.get("oneOf", []) if part.get("type") != "null"]
        if len(parts) != 1 or len(schema["oneOf"]) != 2:
            return None
        forms = self.objects(parts[0])
        return forms and [{name: (kind, False, text) for name, (kind, _, text) in form.items()} for form in forms]

    def type_of(self, schema: Schema) -> str:
        if "$ref" in schema:
            return str(schema["$ref"].rsplit("/", 1)[1])
        if "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema['enum']))}]"
        if "oneOf" in schema:
            return union([self.type_of(part) for part in schema["oneOf"]])
        if "allOf" in schema:
            return "dict[str, Any]"
        kind = schema.get("type")
        if isinstance(kind, list):
            return union([self.type_of({**schema, "type": one}) for one in kind])
        match kind:
            case "array":
                if "prefixItems" in schema:
                    return "list[Any]"
                items = schema.get("items")
                return f"list[{self.type_of(items) if isinstance(items, dict) else 'Any'}]"
            case "object":
                values = schema.get("additionalProperties")
                if "properties" in schema:
                    return self.inline(schema)
                return f"dict[str, {self.type_of(values) if isinstance(values, dict) else 'Any'}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}.get(
            str(kind), "Any"
        )

    def inline(self, schema: Schema) -> str:
        """Returns the name of a type for an object that has none, which is the only member of another one."""
        name = "".join(word.capitalize() for part in schema["properties"] for word in part.split("_")) + "Members"
        forms = self.objects(schema)
        assert forms is not None
        text = typed_dict(name, forms[0], about(schema))
        if text not in self.parts:
            self.parts.append(text)
        return name

    def write(self) -> str:
        for name, schema in sorted(self.schemas.items()):
            forms = self.objects(schema)
            if forms is None:
                self.aliases[name] = (self.type_of(schema), about(schema))
            elif len(forms) == 1:
                self.parts.append(typed_dict(name, forms[0], about(schema)))
            else:
                names = [variant_name(name, number, form) for number, form in enumerate(forms)]
                if len(set(names)) < len(names):
                    names = [f"{name}{number}" for number in range(len(forms))]
                self.parts += [typed_dict(one, form, about(schema)) for one, form in zip(names, forms, strict=True)]
                self.aliases[name] = (union(names), about(schema))
        self.parts += self.alias_parts()
        return (
            GENERATED
            + "\nfrom __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n\n\n"
            + "\n\n".join(self.parts)
        )

    def alias_parts(self) -> list[str]:
        """Returns the definitions of aliases, after those that they need: they are evaluated where they are."""
        parts: dict[str, str] = {}

        def define(name: str) -> None:
            kind, text = self.aliases[name]
            for needed in re.findall(r"\w+", re.sub(r"'[^']*'", "", kind)):
                if needed in self.aliases and needed not in parts:
                    define(needed)
            parts[name] = (f"# {text}\n" if text else "") + f"{name}: TypeAlias = {kind}\n"

        for name in sorted(self.aliases):
            define(name)
        return list(parts.values())


def about(schema: Schema) -> str:
    """Returns the first paragraph of a description."""
    parts = [schema, *schema.get("oneOf", []), *schema.get("allOf", [])]
    texts = (part["description"] for part in parts if "description" in part)
    return " ".join(next(texts, "").split("\n\n")[0].split())


def union(types: list[str]) -> str:
    return " | ".join(dict.fromkeys(types))


def quoted(text: str) -> str:
    return json.dumps(text)


def variant_name(name: str, number: int, form: Members) -> str:
    """Returns the name of a form: by the value of the member that tells forms apart, or by its first required member."""
    for tag in ("type", "outcome", "change", "state"):
        literal = re.fullmatch(r"Literal\['([\w-]+)'\]", form[tag][0]) if tag in form else None
        if literal:
            return name + "".join(word.capitalize() for word in literal[1].split("-"))
    required = [member for member, (_, is_required, _) in form.items() if is_required]
    return name + "".join(word.capitalize() for word in required[0].split("_")) if required else f"{name}{number}"


def typed_dict(name: str, members: Members, description: str) -> str:
    def annotation(kind: str, required: bool) -> str:
        return kind if required else f"NotRequired[{kind}]"

    if any(keyword.iskeyword(member) for member in members):
        fields = [f"        {member!r}: {quoted(annotation(kind, required))}," for member, (kind, required, _) in members.items()]
        return "\n".join([f"# {description}", f"{name} = TypedDict(", f"    {name!r},", "    {", *fields, "    },", ")", ""])
    lines = [f"class {name}(TypedDict):", f"    {docstring(description)}", ""]
    for member, (kind, required, text) in members.items():
        lines += [f"    {member}: {annotation(kind, required)}"] + ([f"    {docstring(text)}"] if text else [])
    return "\n".join([*lines, ""])


def docstring(text: str) -> str:
    return '"""' + text.replace("\\", "\\\\").replace('"""', "'''").removesuffix('"') + '"""'


def operations(document: Schema) -> str:
    """Returns the module with the operations."""
    lines = [
        GENERATED,
        "from __future__ import annotations",
        "",
        "import json",
        "from abc import ABC, abstractmethod",
        "from typing import Any, Literal, overload",
        "",
        "from . import _types as t",
        "",
        "",
        "class Operations(ABC):",
        '    """The operations of a vault, by name."""',
        "",
        "    @abstractmethod",
        "    def _run(self, name: str, request: str) -> str: ...",
        "",
    ]
    for path, item in sorted(document["paths"].items()):
        operation = item["post"]
        content = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        answer = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        request, answer = (ref.rsplit("/", 1)[1] for ref in (content, answer))
        name = path.rsplit("/", 1)[1]
        lines += [
            "    @overload",
            f"    def run(self, name: Literal[{name!r}], request: t.{request}) -> t.{answer}:",
            f"        {docstring(operation['summary'] + '.')}",
            "",
        ]
    lines += [
        "    def run(self, name: str, request: Any) -> Any:",
        '        """Runs the operation of a name. `docs/api.json` describes all of them."""',
        "        return json.loads(self._run(name, json.dumps(request)))",
        "",
    ]
    return "\n".join(lines)


def generated(api: str) -> dict[str, str]:
    """Returns the files that are generated from an OpenAPI document."""
    document = json.loads(api)
    types = Types(document["components"]["schemas"]).write()
    return {"_types.py": types, "_operations.py": operations(document)}


if __name__ == "__main__":
    for file, text in generated(API.read_text(encoding="utf-8")).items():
        (PACKAGE / file).write_text(text, encoding="utf-8")
