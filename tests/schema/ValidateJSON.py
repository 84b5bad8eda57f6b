"""Checks the JSON Schema of traces against a file that the writer wrote.

usage: ValidateJSON.py SCHEMA FILE

The schema must be valid and describe everything in it, FILE must be valid under it, and FILE with
one thing changed must not be. Exits with 1 and says what is wrong otherwise.
"""

import copy
import json
import sys

import jsonschema

MISSING = object()

# Where in the file, and what to put there instead. No reader accepts any of these.
FAULTS = [
    ("/schema_version", 2),
    ("/schema_version", "1"),
    ("/schema_version", MISSING),
    ("/name", None),
    ("/forward", MISSING),
    ("/extra", 0),
    ("/domains/0", "cuda-graph"),
    ("/domains/0/name", MISSING),
    ("/backward/extra", 0),
    ("/forward/properties/0", "claim"),
    ("/forward/properties/0", "dels"),  # is there already
    ("/forward/arguments", MISSING),
    ("/forward/arguments/0/saved", 0),
    ("/forward/arguments/0/name", None),
    ("/forward/arguments/0/name", "%x"),
    ("/forward/arguments/0/name", -1),
    ("/forward/arguments/0/type", MISSING),
    ("/forward/arguments/0/type", "f32"),
    ("/forward/arguments/0/type/kind", "Tensor"),
    ("/forward/arguments/0/type/dtype", "float32"),
    ("/forward/arguments/0/type/shape/0", 1.5),
    ("/forward/arguments/0/type/shape/0", "8/S"),
    ("/forward/arguments/0/type/shape/0", 2**63),
    ("/forward/arguments/0/type/device", "cuda"),
    ("/forward/arguments/5/type/dtype", "f32"),
    ("/forward/arguments/1/tags/0", "trained"),
    ("/forward/arguments/1/path", 1),
    ("/backward/arguments/0/saved", "0"),
    ("/forward/ops", {}),
    ("/forward/ops/0/op", ""),
    ("/forward/ops/0/op", MISSING),
    ("/forward/ops/0/operands", MISSING),
    ("/forward/ops/0/results", MISSING),
    ("/forward/ops/0/effects", []),
    ("/forward/ops/1/operands/0", True),
    ("/forward/ops/1/operands/0", 0.5),
    ("/forward/ops/1/operands/0", {"value": "w"}),
    ("/forward/ops/1/attributes/dims/0", 0.5),
    ("/forward/ops/1/attributes/dims/0", {"float": "0.5"}),
    ("/forward/ops/1/attributes/dims/0", {"float": 1, "dtype": "f32"}),
    ("/forward/ops/1/attributes/dims/0", {"int": 1}),
    ("/forward/ops/1/attributes/dims/0", {}),
    ("/forward/ops/1/results/0/saved", 0),
    ("/forward/ops/1/module", 0),
    ("/forward/ops/1/location", "model.py:12:3"),
    ("/forward/ops/1/location/line", -1),
    ("/forward/ops/1/location/column", MISSING),
    ("/forward/ops/1/claim/capturable", MISSING),
    ("/forward/ops/1/claim/capturable", "yes"),
    ("/forward/ops/0/claim/workspace_bytes", 2**64),
    ("/forward/ops/1/fusion/decider", "user"),
    ("/forward/ops/1/fusion/captured", 1),
    ("/forward/ops/3/domain", "cuda-graph"),
    ("/forward/ops/3/domain", -1),
    ("/forward/ops/3/bodies/0/name", "body"),
    ("/forward/ops/3/bodies/0/ops", MISSING),
    ("/forward/ops/3/bodies/0/arguments/0/saved", 0),
    ("/forward/ops/3/bodies/0/ops/0/op", 0),
]


def with_fault(document, pointer, value):
    """A copy of `document` with `value` at `pointer`."""
    changed = copy.deepcopy(document)
    *path, last = pointer.split("/")[1:]
    place = changed
    for key in path:
        place = place[int(key) if isinstance(place, list) else key]
    if isinstance(place, list):
        last = int(last)
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return changed


def undescribed(schema, pointer=""):
    """Pointers of definitions and properties that neither describe themselves nor refer to what
    does."""
    for group in ("properties", "$defs"):
        for name, item in schema.get(group, {}).items():
            if "description" not in item and "$ref" not in item:
                yield f"{pointer}/{group}/{name}"
            yield from undescribed(item, f"{pointer}/{group}/{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from undescribed(schema[key], f"{pointer}/{key}")
    for index, item in enumerate(schema.get("oneOf", [])):
        yield from undescribed(item, f"{pointer}/oneOf/{index}")


def main():
    schema_file, document_file = sys.argv[1:]
    with open(schema_file, encoding="utf-8") as file:
        schema = json.load(file)
    with open(document_file, encoding="utf-8") as file:
        document = json.load(file)
    problems = []
    jsonschema.Draft202012Validator.check_schema(schema)
    problems += [f"{schema_file}:{p}: no description" for p in undescribed(schema)]
    validator = jsonschema.Draft202012Validator(schema)
    for error in validator.iter_errors(document):
        pointer = "".join(f"/{key}" for key in error.absolute_path)
        problems.append(f"{document_file}:{pointer}: {error.message[:200]}")
    for pointer, value in FAULTS:
        if validator.is_valid(with_fault(document, pointer, value)):
            what = "nothing" if value is MISSING else repr(value)
            problems.append(f"{schema_file}: {what} at {pointer} is valid")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
