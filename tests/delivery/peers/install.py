"""The peers, in versions that are pinned, below the target folder and nowhere else.

Before anything of a package runs, its own description must name the publisher that is expected: a name in a registry
can be taken by anyone."""

import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent

CAO = ("cli-agent-orchestrator", "2.5.4")
CAO_PUBLISHER = "https://github.com/awslabs/cli-agent-orchestrator"
HAPI = ("@twsxtd/hapi", "0.30.7")
HAPI_PUBLISHER = "git+https://github.com/tiann/hapi.git"


class Refused(Exception):
    """Why a peer cannot be run."""


def call(what, *command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Refused(f"{what}: {' '.join(last)}")
    return done.stdout.strip()


def folder():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "delivery-peers"


def agents():
    """The folder of the real command lines, as scripts/agents.sh installs them."""
    given = os.environ.get("MATSU_TEST_AGENTS")
    path = pathlib.Path(given or call("scripts/agents.sh", str(ROOT / "scripts/agents.sh")))
    if not (path / "claude").exists():
        raise Refused("Claude Code is not installed; scripts/agents.sh installs it")
    return path


def claude_version(path):
    return call("claude --version", str(path / "claude"), "--version").split()[0]


def cao():
    """CLI Agent Orchestrator in a virtual environment. Wheels only: nothing of a package runs while it is installed."""
    if not shutil.which("tmux"):
        raise Refused("tmux is not installed")
    home = folder() / "cao"
    name, version = CAO
    if not (home / "bin/cao").exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        call("venv", sys.executable, "-m", "venv", str(home))
        pinned = ["--constraint", str(HERE / "cao-versions.txt"), "--only-binary", ":all:"]
        call("pip", str(home / "bin/python"), "-m", "pip", "install", "--quiet", *pinned, f"{name}=={version}")
    places = [str(place) for place in home.glob("lib/python*/site-packages")]
    found = next(iter(importlib.metadata.distributions(name=name, path=places)), None)
    named = found.metadata.get_all("Project-URL") if found else []
    if not found or found.version != version or f"Homepage, {CAO_PUBLISHER}" not in named:
        raise Refused(f"{name} in the virtual environment is not version {version} of {CAO_PUBLISHER}")
    return home / "bin"


def hapi():
    home = folder() / "hapi"
    name, version = HAPI
    package = home / "node_modules" / name / "package.json"
    if not package.exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private":true}')
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        call("npm", "npm", "install", "--prefix", str(home), *quiet, f"{name}@{version}")
    # The program is in a package of its own for each platform.
    for described in [package, *package.parent.parent.glob("hapi-*/package.json")]:
        said = json.loads(described.read_text())
        if said["version"] != version or said["repository"]["url"] != HAPI_PUBLISHER:
            raise Refused(f"{said['name']} is not version {version} of {HAPI_PUBLISHER}")
    return home / "node_modules/.bin"


def tools():
    return types.SimpleNamespace(agents=agents(), cao=None, hapi=None)
