"""A list of what is inside the binary (CycloneDX 1.6): the crates it is built from for one target, and the npm packages
whose code is in its page."""

import base64
import json
import sys
import tomllib

from common import RELEASE, ROOT, VERSION, run


def bom(target):
    arguments = ["--format-version", "1", "--locked", "--filter-platform", target]
    metadata = json.loads(run("cargo", "metadata", *arguments))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(id for id, package in packages.items() if package["name"] == "matsu")
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    sums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock}

    # What tests and build scripts alone need is not in the binary.
    seen, open_ids = set(), [root]
    needs = {}
    while open_ids:
        id = open_ids.pop()
        if id in seen:
            continue
        seen.add(id)
        used = [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        needs[id] = used
        open_ids.extend(used)

    def reference(id):
        return f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"

    def component(id):
        package = packages[id]
        entry = {"type": "library", "bom-ref": reference(id), "name": package["name"], "version": package["version"], "purl": reference(id)}
        if package["license"]:
            entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if sums.get((package["name"], package["version"])):
            entry["hashes"] = [{"alg": "SHA-256", "content": sums[(package["name"], package["version"])]}]
        return entry

    ids = sorted(seen - {root}, key=reference)
    page = of_page()
    of_root = {entry["bom-ref"] for entry in page}
    main = {"type": "application", "bom-ref": reference(root), "name": "matsu", "version": VERSION, "description": RELEASE["summary"]}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main, "properties": [{"name": "matsu:target", "value": target}]},
        "components": [component(id) for id in ids] + page,
        "dependencies": [
            {
                "ref": reference(id),
                "dependsOn": sorted({reference(used) for used in needs[id]} | (of_root if id == root else set())),
            }
            for id in [root, *ids]
        ],
    }


def of_page():
    """What the build of the page has noted, with versions, licences and sums of its lock file."""
    noted = ROOT / "ui/bundled.json"
    if not noted.exists():
        sys.exit("dist: ui/bundled.json is missing, which the build of the page writes; remove ui/dist and run 'make ui'")
    locked = json.loads((ROOT / "ui/package-lock.json").read_text())["packages"]
    components = []
    for name in json.loads(noted.read_text()):
        package = locked[f"node_modules/{name}"]
        reference = f"pkg:npm/{name.replace('@', '%40', 1)}@{package['version']}"
        entry = {"type": "library", "bom-ref": reference, "name": name, "version": package["version"], "purl": reference}
        entry["licenses"] = [{"expression": package["license"]}]
        algorithm, sum = package["integrity"].split("-", 1)
        entry["hashes"] = [{"alg": {"sha512": "SHA-512", "sha1": "SHA-1"}[algorithm], "content": base64.b64decode(sum).hex()}]
        components.append(entry)
    return components
