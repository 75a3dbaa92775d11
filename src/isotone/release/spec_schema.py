"""The JSON Schema of a spec, made from the types that read it, for editors that check a file while it is written.

It knows names, types and which sections go together. What isotone checks beyond that, such as whether an order has a cycle, only
``isotone plan`` tells.
"""

from __future__ import annotations

from typing import Any

from isotone.release.kinds import SECTIONS, all_kinds
from isotone.release.spec import spec_form

__all__ = ["spec_schema"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def spec_schema() -> dict[str, Any]:
    """The JSON Schema of a spec, which is a TOML file with the tables that it describes."""
    schema = spec_form(*SECTIONS).model_json_schema()
    schema["properties"].pop("folder")  # where the file is, which it does not say
    for kind in all_kinds():
        schema["properties"][kind.key] = {"$ref": f"#/$defs/{kind.section.__name__}"}
    schema["oneOf"] = [{"required": [key]} for key in SECTIONS]
    return {"$schema": _DRAFT, "title": "isotone spec", **{k: v for k, v in schema.items() if k != "title"}}
