"""The artefacts of one platform, made from its finished binary: target.py BINARY TARGET OUT."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from common import RELEASE, ROOT, TARGETS, VERSION, dump, epoch, glibc, licences, run, server_arguments, write_tar, write_zip
from man_page import page
from sbom import bom

SHELLS = {"bash": "matsu.bash", "zsh": "_matsu", "fish": "matsu.fish"}


class Target:
    def __init__(self, binary, target, out):
        self.target, self.names, self.out = target, TARGETS[target], out
        self.binary = binary
        self.data = binary.read_bytes()
        self.is_linux = self.names["os"] == "linux"
        self.glibc = glibc(binary) if self.is_linux else None
        self.man = page(binary)
        self.completions = {
            file: subprocess.run([binary, "completions", shell], check=True, stdout=subprocess.PIPE).stdout
            for shell, file in SHELLS.items()
        }

    def archive(self):
        entries = {"matsu": (self.data, 0o755), "matsu.1": (self.man, 0o644), **licences()}
        entries["README.md"] = ((ROOT / "README.md").read_bytes(), 0o644)
        entries |= {f"completions/{file}": (text, 0o644) for file, text in self.completions.items()}
        name = f"matsu-{VERSION}-{self.target}"
        write_tar(self.out / f"{name}.tar.gz", name, entries)

    def npm(self):
        """The package with the binary. Nothing runs when it is installed."""
        name = f"{RELEASE['npm']}-{self.names['os']}-{self.names['npm']}"
        manifest = npm_manifest(name, f"The binary of {RELEASE['npm']} for {self.target}")
        manifest |= {"os": [self.names["os"]], "cpu": [self.names["npm"]], "files": ["bin/matsu"], "preferUnplugged": True}
        if self.is_linux:
            manifest["libc"] = ["glibc"]
        pack_npm(self.out, manifest, {"bin/matsu": (self.data, 0o755), "README.md": (f"# {name}\n\nInstall {RELEASE['npm']} instead.\n".encode(), 0o644)})

    def wheel(self):
        machine = self.names["machine"]
        tag = f"manylinux_{self.glibc[0]}_{self.glibc[1]}_{machine}" if self.is_linux else f"macosx_11_0_{machine}"
        module = RELEASE["pypi"].replace("-", "_")
        info = f"{module}-{VERSION}.dist-info"
        scripts = f"{module}-{VERSION}.data/scripts"
        # `uvx NAME` starts the program that is called as the package.
        alias = b'#!/bin/sh\nexec "$(dirname "$0")/matsu" "$@"\n'
        entries = {f"{scripts}/matsu": (self.data, 0o755), f"{scripts}/{RELEASE['pypi']}": (alias, 0o755)}
        fields = [
            "Metadata-Version: 2.4", f"Name: {RELEASE['pypi']}", f"Version: {VERSION}", f"Summary: {RELEASE['summary']}",
            "License-Expression: MIT OR Apache-2.0", "License-File: LICENSE-MIT", "License-File: LICENSE-APACHE",
            f"Project-URL: Repository, {RELEASE['repository']}", f"Keywords: {','.join(RELEASE['keywords'])}",
            "Requires-Python: >=3.8", "Description-Content-Type: text/markdown",
        ]
        about = f"<!-- mcp-name: {RELEASE['mcp']} -->\n\n{package_readme('uvx --from ' + RELEASE['pypi'] + ' matsu')}"
        entries[f"{info}/METADATA"] = (("\n".join(fields) + "\n\n" + about).encode(), 0o644)
        wheel = f"Wheel-Version: 1.0\nGenerator: matsu\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
        entries[f"{info}/WHEEL"] = (wheel.encode(), 0o644)
        entries |= {f"{info}/licenses/{name}": entry for name, entry in licences().items()}
        record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, (data, _) in entries.items())
        entries[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), 0o644)
        write_zip(self.out / f"{module}-{VERSION}-py3-none-{tag}.whl", entries)

    def deb(self):
        if not self.is_linux:
            return
        unit = (ROOT / "deploy/matsu.service").read_text()
        unit = unit.replace("%h/.cargo/bin/matsu", "/usr/bin/matsu").split("\n", 1)[1]
        files = {
            "usr/bin/matsu": (self.data, 0o755),
            "usr/lib/systemd/user/matsu.service": (unit.encode(), 0o644),
            "usr/share/man/man1/matsu.1": (self.man, 0o644),
            "usr/share/bash-completion/completions/matsu": (self.completions["matsu.bash"], 0o644),
            "usr/share/zsh/vendor-completions/_matsu": (self.completions["_matsu"], 0o644),
            "usr/share/fish/vendor_completions.d/matsu.fish": (self.completions["matsu.fish"], 0o644),
            "usr/share/doc/matsu/copyright": (b"".join(data + b"\n" for data, _ in licences().values()), 0o644),
        }
        size = sum(len(data) for data, _ in files.values()) // 1024
        control = (
            f"Package: {RELEASE['deb']}\nVersion: {VERSION}\nArchitecture: {self.names['deb']}\nMaintainer: {RELEASE['maintainer']}\n"
            f"Installed-Size: {size}\nDepends: libc6 (>= {self.glibc[0]}.{self.glibc[1]}), libgcc-s1, ca-certificates\nSuggests: git (>= 1:2.41), libnotify-bin, chromium\nSection: utils\n"
            f"Priority: optional\nHomepage: {RELEASE['repository']}\nDescription: {RELEASE['summary']}\n"
            " One program with a server for MCP, a page and a command line.\n"
        )
        files["DEBIAN/control"] = (control.encode(), 0o644)
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "root"
            for name, entry in files.items():
                place(root / name, *entry)
            out = self.out / f"{RELEASE['deb']}_{VERSION}_{self.names['deb']}.deb"
            environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
            run("dpkg-deb", "--root-owner-group", "-Zxz", "-z3", "--build", str(root), str(out), env=environment)

    def bundle(self):
        manifest = {
            "manifest_version": "0.3",
            "name": "matsu",
            "display_name": RELEASE["title"],
            "version": VERSION,
            "description": RELEASE["summary"],
            "author": {"name": RELEASE["title"], "url": RELEASE["repository"]},
            "repository": {"type": "git", "url": RELEASE["repository"]},
            "homepage": RELEASE["repository"],
            "license": "MIT OR Apache-2.0",
            "keywords": RELEASE["keywords"],
            "server": {
                "type": "binary",
                "entry_point": "server/matsu",
                "mcp_config": {"command": "${__dirname}/server/matsu", "args": server_arguments(), "env": {}},
            },
            "tools_generated": True,
            "compatibility": {"platforms": [self.names["os"]]},
        }
        entries = {"manifest.json": (dump(manifest), 0o644), "server/matsu": (self.data, 0o755), **licences()}
        write_zip(self.out / f"matsu-{VERSION}-{self.names['os']}-{self.names['npm']}.mcpb", entries)


def folders_of_this_machine(data):
    """What would make another binary of the same commit on another machine, and tell who built it."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    folders = {str(path) for folder in (ROOT, home) for path in (folder.absolute(), folder.resolve())}
    return sorted(folder for folder in folders if f"{folder}/".encode() in data)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def place(path, data, mode):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def package_readme(command):
    program, *words = command.split()
    servers = {"mcpServers": {"matsu": {"command": program, "args": words + server_arguments()}}}
    return f"# {RELEASE['title']}\n\n{RELEASE['summary']}.\n\n```json\n{dump(servers).decode()}```\n\nDocumentation: {RELEASE['repository']}\n"


def npm_manifest(name, description):
    return {
        "name": name,
        "version": VERSION,
        "description": description,
        "license": "MIT OR Apache-2.0",
        "repository": {"type": "git", "url": f"git+{RELEASE['repository']}.git"},
        "homepage": RELEASE["repository"],
        "keywords": RELEASE["keywords"],
        "publishConfig": {"access": "public"},
    }


def pack_npm(out, manifest, entries):
    with tempfile.TemporaryDirectory() as folder:
        for name, entry in (entries | licences() | {"package.json": (dump(manifest), 0o644)}).items():
            place(Path(folder) / name, *entry)
        run("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(out), folder)


def main():
    binary, target, out = Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # Debugging symbols stay with who built it.
        stripped = Path(folder) / "matsu"
        shutil.copy(binary, stripped)
        run("strip", str(stripped))
        named = folders_of_this_machine(stripped.read_bytes())
        if named:
            sys.exit(
                f"dist: {binary} names folders of this machine ({', '.join(named)}), so it must not be published; "
                "let scripts/dist.sh build it: it sets the RUSTFLAGS that take them out"
            )
        if TARGETS[target]["os"] == "darwin":
            # Stripping voids the signature, without which arm64 starts nothing.
            run("codesign", "--force", "--sign", "-", str(stripped))
        job = Target(stripped, target, out)
        for step in (job.archive, job.npm, job.wheel, job.deb, job.bundle):
            step()
        (out / f"matsu-{VERSION}-{target}.cdx.json").write_bytes(dump(bom(target)))
        libc = f", glibc {job.glibc[0]}.{job.glibc[1]} or newer" if job.glibc else ""
        print(f"dist: {target}: binary {len(job.data) / 1e6:.1f} MB{libc}")


if __name__ == "__main__":
    main()
