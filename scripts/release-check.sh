#!/usr/bin/env bash
# Whether this tree and dist/ can be published: one version everywhere, no placeholder, a changelog, artefacts of this
# very commit. Says all that is wrong, then fails.
#
#   scripts/release-check.sh [--tag vX.Y.Z]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

problems=0
wrong() {
  echo "release-check: $*" >&2
  problems=$((problems + 1))
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
dist=${MATSU_DIST:-dist}
if [ "${1:-}" = --tag ] && [ "${2:-}" != "v$version" ]; then
  wrong "the tag is ${2:-empty}; the version in Cargo.toml is $version. Tag it v$version"
fi

grep -q "^## \[$version\] - [0-9-]*$" CHANGELOG.md ||
  wrong "CHANGELOG.md has no section '## [$version] - DATE'; move what is under Unreleased there"

if grep -rIq EXAMPLE-OWNER release.json crates/matsu/Cargo.toml; then
  wrong "release.json or crates/matsu/Cargo.toml names the placeholder EXAMPLE-OWNER; write the real owner, then run 'cargo run -p xtask -- plugins'"
fi
[ "$(python3 -c 'import json; print(json.load(open("release.json"))["names_registered"])')" = True ] ||
  wrong "release.json says that the names on npm and PyPI are not registered for this project; register them, then set names_registered"

# What `matsu upgrade` and `matsu uninstall` print.
for name in npm pypi; do
  registered=$(python3 -c 'import json, sys; print(json.load(open("release.json"))[sys.argv[1]])' "$name")
  grep -qE "(install --global|install --upgrade) ${registered}[@\"]" crates/matsu/src/commands/installed.rs ||
    wrong "crates/matsu/src/commands/installed.rs names another $name package than $registered; write the name of release.json there"
done

# The generator has the version from the same place; what it wrote may be older.
cargo run --quiet --locked -p xtask -- plugins >/dev/null
[ -z "$(git status --porcelain -- plugins .claude-plugin .agents)" ] ||
  wrong "the plugins in the repository are not those that xtask generates; commit them"
[ -z "$(git status --porcelain --untracked-files=no)" ] || wrong "there are changes that are not committed"

if [ -e "$dist/SHA256SUMS" ]; then
  (cd "$dist" && sha256sum --quiet --check SHA256SUMS) || wrong "a file in $dist has another sum than SHA256SUMS; run 'make dist' again"
  python3 - "$dist" "$version" <<'PY' || problems=$((problems + 1))
import json, pathlib, re, subprocess, sys, tarfile, tomllib, zipfile
dist, version = pathlib.Path(sys.argv[1]), sys.argv[2]
release = json.load(open("release.json"))
found = {}
for path in dist.iterdir():
    if path.suffix == ".tgz":
        with tarfile.open(path) as archive:
            found[path.name] = json.load(archive.extractfile("package/package.json"))["version"]
    elif path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
            found[path.name] = re.search(r"^Version: (.+)$", archive.read(name).decode(), re.M).group(1)
    elif path.suffix == ".mcpb":
        with zipfile.ZipFile(path) as archive:
            found[path.name] = json.loads(archive.read("manifest.json"))["version"]
    elif path.suffix == ".deb":
        found[path.name] = subprocess.run(["dpkg-deb", "-f", path, "Version"], check=True, capture_output=True, text=True).stdout.strip()
    elif path.name == "server.json":
        entry = json.loads(path.read_text())
        found[path.name] = entry["version"]
        for package in entry["packages"]:
            found[f"{path.name}: {package['identifier']}"] = package.get("version", version)
    elif path.name == "matsu.rb":
        found[path.name] = re.search(r'version "(.+)"', path.read_text()).group(1)
    elif path.name == "install.sh":
        found[path.name] = re.search(r"^version='(.+)'$", path.read_text(), re.M).group(1)
    elif path.name.endswith(".cdx.json"):
        found[path.name] = json.loads(path.read_text())["metadata"]["component"]["version"]
    elif path.name.endswith(".tar.gz"):
        # A version may have a hyphen of its own (1.2.0-rc.1), so ours is looked for first.
        is_ours = path.name.startswith(f"matsu-{version}-")
        found[path.name] = version if is_ours else re.match(r"matsu-([0-9][^-]*)-", path.name).group(1)
wrong = {name: value for name, value in found.items() if value != version}
kinds = [".tgz", ".whl", ".mcpb", ".deb", "server.json", "matsu.rb", "install.sh", "-plugins.tar.gz"]
missing = [kind for kind in kinds if not any(name.endswith(kind) for name in found)]
# The archive of the plugins is no archive of the program. Each program's archive has a list of what is in it.
programs = [name for name in found if name.endswith(".tar.gz") and not name.endswith("-plugins.tar.gz")]
missing += [] if programs else ["archive of the program (matsu-VERSION-TARGET.tar.gz)"]
lists = [name.removesuffix(".tar.gz") + ".cdx.json" for name in programs] or [".cdx.json"]
missing += [name for name in lists if not any(known.endswith(name) for known in found)]
faults = []
commit_time = int(subprocess.run(["git", "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True).stdout)
for path in sorted(dist.glob("*.tar.gz")):
    with tarfile.open(path) as archive:
        if any(entry.mtime != commit_time for entry in archive):
            faults.append(f"{path.name} was made of another commit; run 'make dist' again")
        if not path.name.endswith("-plugins.tar.gz"):
            continue
        for entry in filter(tarfile.TarInfo.isfile, archive):
            name = entry.name.split("/", 1)[1]
            ours = pathlib.Path(name)
            if not ours.is_file() or ours.read_bytes() != archive.extractfile(entry).read():
                faults.append(f"{path.name}: {name} is not the file of the repository; run 'make dist' again")
            if name.endswith("plugin.json") or name.endswith("gemini-extension.json"):
                found[f"{path.name}: {name}"] = json.load(archive.extractfile(entry)).get("version")
binstall = tomllib.loads(pathlib.Path("crates/matsu/Cargo.toml").read_text())["package"]["metadata"]["binstall"]["pkg-url"]
problems = [f"{name} carries version {value}, not {version}; run 'make dist' again" for name, value in wrong.items()]
problems += faults
problems += [f"{dist} has no {kind}; run 'make dist' again" for kind in missing]
if not binstall.startswith(release["repository"] + "/"):
    problems.append(f"pkg-url in crates/matsu/Cargo.toml is not below {release['repository']}; write the same address")
for problem in problems:
    print(f"release-check: {problem}", file=sys.stderr)
print(f"release-check: {len(found) - len(wrong)} artefacts carry version {version}")
sys.exit(bool(problems))
PY
else
  wrong "$dist has no artefacts; run 'make dist' first"
fi

# A store that an earlier version wrote is opened by the packed binary, and its tasks are all there.
target=$(rustc -vV | sed -n 's/^host: //p')
fixtures=crates/matsu/tests/it/testdata
if [ -e "$dist/matsu-$version-$target.tar.gz" ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  tar -xzf "$dist/matsu-$version-$target.tar.gz" -C "$scratch" --strip-components=1
  said=$("$scratch/matsu" --version || true)
  [ "$said" = "matsu $version" ] || wrong "the packed binary says '$said', not 'matsu $version'; run 'make dist' again"
  for packed in "$fixtures"/store-*.db.gz; do
    name=$(basename "$packed" .db.gz)
    mkdir "$scratch/$name"
    gzip -dc "$packed" >"$scratch/$name/matsu.db"
    # In a home of its own: no settings of this user, and no daemon.
    if env -i HOME="$scratch/$name" PATH="$PATH" MATSU_KEEP_RESULTS=3650 "$scratch/matsu" --data-dir "$scratch/$name" migrate >"$scratch/said" 2>&1 &&
      env -i HOME="$scratch/$name" PATH="$PATH" MATSU_KEEP_RESULTS=3650 "$scratch/matsu" --data-dir "$scratch/$name" tasks --json >"$scratch/tasks.json" &&
      python3 - "$fixtures/$name.json" "$scratch/tasks.json" <<'PY'; then
import json, sys
wanted, found = (json.load(open(path)) for path in sys.argv[1:])
states = {task["task_id"]: task["status"] for task in found["items"]}
lost = [task for task in wanted["tasks"] if states.get(task["task_id"]) != task["status"]]
assert wanted["tasks"] and not lost, f"not found as they were: {lost}"
PY
      echo "release-check: a store written by ${name#store-} is migrated, with all of its tasks"
    else
      cat "$scratch/said" >&2
      wrong "a store written by ${name#store-} cannot be used by this version"
    fi
  done
else
  wrong "$dist has no archive of $target, so no store of an earlier version was tried"
fi

if [ "$problems" -gt 0 ]; then
  echo "release-check: $problems problems; nothing may be published" >&2
  exit 1
fi
echo "release-check: version $version can be published"
