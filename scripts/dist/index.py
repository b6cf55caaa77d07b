"""What names the artefacts of all platforms, made after the last of them: index.py OUT.

The npm package that chooses a platform, the installer, the Homebrew formula, the registry's server.json, the plugins
and the sums. Only platforms whose artefacts are there are named."""

import sys
from pathlib import Path

from common import DOWNLOADS, RELEASE, ROOT, TARGETS, VERSION, dump, licences, run, server_arguments, sha256, write_tar
from target import npm_manifest, pack_npm, package_readme


def present(out):
    return [target for target in TARGETS if (out / f"matsu-{VERSION}-{target}.tar.gz").exists()]


def npm(out, targets):
    manifest = npm_manifest(RELEASE["npm"], RELEASE["summary"])
    manifest |= {
        "bin": {"matsu": "matsu.js"},
        "files": ["matsu.js"],
        "engines": {"node": ">=18"},
        "mcpName": RELEASE["mcp"],
        "optionalDependencies": {
            f"{RELEASE['npm']}-{TARGETS[target]['os']}-{TARGETS[target]['npm']}": VERSION for target in targets
        },
    }
    launcher = (ROOT / "scripts/dist/npm_launcher.js").read_bytes()
    readme = package_readme(f"npx -y {RELEASE['npm']}").encode()
    pack_npm(out, manifest, {"matsu.js": (launcher, 0o755), "README.md": (readme, 0o644)})


def installer(out):
    text = (ROOT / "scripts/dist/install.sh").read_text()
    text = text.replace("@VERSION@", VERSION).replace("@DOWNLOADS@", DOWNLOADS)
    (out / "install.sh").write_text(text)
    (out / "install.sh").chmod(0o755)


FORMULA = """# Made by `make dist`; do not edit.
class Matsu < Formula
  desc "{summary}"
  homepage "{repository}"
  version "{version}"
  license any_of: ["MIT", "Apache-2.0"]

{platforms}
  def install
    bin.install "matsu"
    man1.install "matsu.1"
    bash_completion.install "completions/matsu.bash" => "matsu"
    zsh_completion.install "completions/_matsu"
    fish_completion.install "completions/matsu.fish"
  end

  service do
    run [opt_bin/"matsu", "serve"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/matsu --version")
  end
end
"""


def formula(out, targets):
    blocks = []
    for target in targets:
        names = TARGETS[target]
        system = {"linux": "on_linux", "darwin": "on_macos"}[names["os"]]
        processor = {"x64": "on_intel", "arm64": "on_arm"}[names["npm"]]
        archive = f"matsu-{VERSION}-{target}.tar.gz"
        blocks.append(
            f"  {system} do\n    {processor} do\n      url \"{DOWNLOADS}/{archive}\"\n"
            f"      sha256 \"{sha256(out / archive)}\"\n    end\n  end\n"
        )
    # Homebrew wants it short and without the name.
    summary = RELEASE["summary"].split(":")[0]
    values = {"summary": summary, "repository": RELEASE["repository"], "version": VERSION, "platforms": "\n".join(blocks)}
    (out / "matsu.rb").write_text(FORMULA.format(**values))


def server(out, targets):
    words = [{"type": "positional", "value": word} for word in server_arguments()]
    stdio = {"transport": {"type": "stdio"}}
    packages = [
        {"registryType": "npm", "identifier": RELEASE["npm"],
         "version": VERSION, "runtimeHint": "npx", "packageArguments": words, **stdio},
        {"registryType": "pypi", "identifier": RELEASE["pypi"],
         "version": VERSION, "runtimeHint": "uvx", "packageArguments": words, **stdio},
    ]
    for target in targets:
        bundle = f"matsu-{VERSION}-{TARGETS[target]['os']}-{TARGETS[target]['npm']}.mcpb"
        packages.append({"registryType": "mcpb", "identifier": f"{DOWNLOADS}/{bundle}", "fileSha256": sha256(out / bundle), **stdio})
    entry = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": RELEASE["mcp"],
        "title": RELEASE["title"],
        "description": RELEASE["summary"],
        "repository": {"url": RELEASE["repository"], "source": "github"},
        "version": VERSION,
        "packages": packages,
    }
    (out / "server.json").write_bytes(dump(entry))


def plugins(out):
    """The marketplaces and plugins as they are in the repository, for an installation without Git."""
    listed = run("git", "ls-files", "-z", ".claude-plugin", ".agents", "plugins").split("\0")
    entries = {name: ((ROOT / name).read_bytes(), 0o644) for name in listed if name and "/source/" not in name}
    write_tar(out / f"matsu-{VERSION}-plugins.tar.gz", f"matsu-{VERSION}-plugins", entries | licences())


def sums(out):
    files = sorted(path for path in out.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    (out / "SHA256SUMS").write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files))
    for path in files:
        print(f"dist: {path.stat().st_size / 1e6:8.2f} MB  {path.name}")


def main():
    out = Path(sys.argv[1]).resolve()
    targets = present(out)
    if not targets:
        sys.exit(f"dist: {out} has no archive of version {VERSION}; make the artefacts of a platform first")
    npm(out, targets)
    installer(out)
    formula(out, targets)
    server(out, targets)
    plugins(out)
    sums(out)


if __name__ == "__main__":
    main()
