# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a wheel, in CycloneDX's JSON: the Go modules in its executables, as the executables themselves tell.

    sbom.py VERSION EXECUTABLE...       prints it

Licences are those of THIRD_PARTY.md; a module without a row there is refused. The same executables give the same document.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import uuid
from typing import Any

NAME = "memtrace-gpu.cdx.json"
SPEC = "1.6"
OWN = "Apache-2.0"
# Names of licences as THIRD_PARTY.md has them.
LICENCE = re.compile(r"\b(MIT|Apache-2\.0|BSD-[23]-Clause|CC-BY-4\.0|FTL|OFL-1\.1)\b")


class Unlisted(Exception):
    """A module that THIRD_PARTY.md does not have."""


def licences(root: str) -> dict[str, str]:
    """SPDX expressions by module, and that of Go's own under "std"."""
    found: dict[str, str] = {}
    with open(os.path.join(root, "THIRD_PARTY.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            names = LICENCE.findall(cells[3]) if len(cells) == 5 else []
            if names:
                found["std" if cells[0].startswith("Go's") else cells[0]] = " AND ".join(dict.fromkeys(names))
    return found


def modules(executable: str) -> dict[tuple[str, str], str]:
    """What `go version -m` says of an executable: sums by module and version. Go itself is the module std."""
    said = subprocess.run([os.environ.get("GO", "go"), "version", "-m", executable], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    first, *rest = said.splitlines()
    found = {("std", first.rpartition("go")[2].strip()): ""}
    for line in rest:
        kind, *fields = line.strip().split("\t")
        if kind == "dep":
            found[fields[0], fields[1]] = fields[2]
    return found


def component(name: str, version: str, total: str, licence: str) -> dict[str, Any]:
    """A module as a component."""
    url = f"pkg:golang/{name}@{version}"
    made: dict[str, Any] = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url, "licenses": [{"expression": licence}]}
    if total:  # h1: the SHA-256 of a list of the module's files, as in go.sum
        made["hashes"] = [{"alg": "SHA-256", "content": base64.b64decode(total[len("h1:"):]).hex()}]
    return made


def document(root: str, version: str, executables: list[str]) -> str:
    """The whole document as text. Raises Unlisted, and OSError or CalledProcessError where an executable cannot be read."""
    known = licences(root)
    components: dict[str, dict[str, Any]] = {}
    dependencies = []
    for path in executables:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        name, parts = os.path.basename(path), []
        for (module, release), total in modules(path).items():
            if module not in known:
                raise Unlisted(f"THIRD_PARTY.md has no licence of {module}, which is part of {name}: add a row")
            part = component(module, release, total, known[module])
            components[part["bom-ref"]] = part
            parts.append(part["bom-ref"])
        components[name] = {"type": "file", "bom-ref": name, "name": name, "version": version, "hashes": [{"alg": "SHA-256", "content": digest}]}
        dependencies.append({"ref": name, "dependsOn": sorted(parts)})
    own = f"pkg:pypi/memtrace-gpu@{version}"
    metadata: dict[str, Any] = {"component": {"type": "application", "bom-ref": own, "name": "memtrace-gpu", "version": version, "purl": own,
                                              "licenses": [{"expression": OWN}]}}
    if "SOURCE_DATE_EPOCH" in os.environ:
        metadata["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    made = {"$schema": f"http://cyclonedx.org/schema/bom-{SPEC}.schema.json", "bomFormat": "CycloneDX", "specVersion": SPEC, "version": 1, "metadata": metadata,
            "components": [components[ref] for ref in sorted(components)],
            "dependencies": [{"ref": own, "dependsOn": sorted(os.path.basename(path) for path in executables)}, *dependencies]}
    made["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True)).urn
    return json.dumps(made, indent=1) + "\n"


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.stdout.write(document(os.path.join(here, "..", ".."), sys.argv[1], sys.argv[2:]))
