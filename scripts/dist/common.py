"""What all artefacts share: the version, the names of release.json, one time stamp, and archives that come out the same twice."""

import gzip
import hashlib
import io
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RELEASE = json.loads((ROOT / "release.json").read_text())
VERSION = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
LICENCES = ["LICENSE-MIT", "LICENSE-APACHE"]
DOWNLOADS = f"{RELEASE['repository']}/releases/download/v{VERSION}"

# Rust's name of a platform, and the names that npm, wheels, Debian and MCP bundles have for it.
TARGETS = {
    "x86_64-unknown-linux-gnu": {"os": "linux", "npm": "x64", "machine": "x86_64", "deb": "amd64"},
    "aarch64-unknown-linux-gnu": {"os": "linux", "npm": "arm64", "machine": "aarch64", "deb": "arm64"},
    "x86_64-apple-darwin": {"os": "darwin", "npm": "x64", "machine": "x86_64"},
    "aarch64-apple-darwin": {"os": "darwin", "npm": "arm64", "machine": "arm64"},
}


def run(*command, **options):
    """The output of a command; its failure is ours."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT, **options).stdout.decode()


def epoch():
    """The time of the last commit, so that the same source makes the same bytes."""
    return int(run("git", "log", "-1", "--format=%ct"))


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def dump(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_tar(path, prefix, entries):
    """entries: name → (bytes, mode)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, (data, mode) in sorted(entries.items()):
            info = tarfile.TarInfo(f"{prefix}/{name}")
            info.size, info.mode, info.mtime = len(data), mode, epoch()
            archive.addfile(info, io.BytesIO(data))
    with path.open("wb") as out, gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=0, compresslevel=6) as packed:
        packed.write(buffer.getvalue())


def write_zip(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in entries.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def licences():
    return {name: ((ROOT / name).read_bytes(), 0o644) for name in LICENCES}


def glibc(binary):
    """The newest glibc that the binary asks for, as (2, 34)."""
    symbols = run("objdump", "-T", str(binary))
    found = [tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", symbols)]
    return max(found)[:2]


def server_arguments():
    """How the registries start the server."""
    return ["mcp"]
