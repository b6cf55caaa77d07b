"""Other tools beside Matsu, measured by the same meaning: what a model request of the parent, or of its next session in
that folder, contains."""

import dataclasses
import datetime
import json
import os
import platform
import signal
import sys
import time

from scripted import Delegation

from . import background, cao, hapi, install, shared

LEFT_OUT = (
    "the network cut, because parent and server are on one machine and speak over loopback, and the quota, because the "
    "child is Claude Code with a scripted model, whose limits are those of its vendor"
)


def measure(count, only=None):
    """Every peer under every fault it can be driven to; what cannot be run is said."""
    began = datetime.datetime.now(datetime.UTC)
    # A measurement that is ended ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tools = install.tools()
    versions = {"Claude Code": install.claude_version(tools.agents)}
    found, not_run, how, loads = [], [], {}, []

    def skip(client, faults, reason):
        not_run.extend({"client": client, "fault": fault, "reason": str(reason)} for fault in faults)

    def peer(client, module_how, faults, left_out, parallel, run):
        how[client] = module_how
        for fault in faults:
            left = count
            while left > 0:
                size, since = min(left, parallel), time.monotonic()
                done = run(fault, size)
                found.extend(done)
                loads.append(os.getloadavg()[0])
                left -= size
                delivered = sum(bool(one.delivered) for one in done)
                print(f"{client}, {fault}: {delivered} of {size} in {time.monotonic() - since:.0f} s", flush=True)
                for error in sorted({one.error for one in done if one.error}):
                    print("  ", error, flush=True)
        for fault, reason in left_out.items():
            skip(client, [fault], reason)

    if only in (None, "background"):
        peer(
            background.NAME, background.HOW, background.FAULTS, background.NOT_RUN, background.PARALLEL,
            lambda fault, size: background.run(tools, fault, size),
        )
    for way in cao.FAULTS:
        if only not in (None, "cao", f"cao-{way}"):
            continue
        try:
            tools.cao = install.cao()
        except install.Refused as reason:
            skip(cao.name(way), ["all"], reason)
            continue
        versions[cao.NAME] = install.CAO[1]
        peer(
            cao.name(way), cao.HOW[way], cao.FAULTS[way], cao.NOT_RUN[way], cao.PARALLEL,
            lambda fault, size, way=way: cao.run(tools, way, fault, size),
        )
    if only in (None, "hapi"):
        try:
            tools.hapi = install.hapi()
            versions["hapi"] = install.HAPI[1]
            peer(
                hapi.NAME, hapi.HOW, hapi.FAULTS, hapi.NOT_RUN, hapi.PARALLEL,
                lambda fault, size: hapi.run(tools, fault, size),
            )
        except install.Refused as reason:
            skip(hapi.NAME, ["all"], reason)
    return {
        "began": began.strftime("%Y-%m-%d"),
        "minutes": round((datetime.datetime.now(datetime.UTC) - began).total_seconds() / 60),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "load": round(max(loads, default=0)),
        "works": shared.WORKS,
        "away": shared.AWAY,
        "lost": shared.LOST,
        "left_out": LEFT_OUT,
        "versions": versions,
        "how": how,
        "not_run": not_run,
        "delegations": [dataclasses.asdict(one) for one in found],
    }


def read(file):
    """What was measured before; None if nothing was."""
    try:
        with open(file) as opened:
            measured = json.load(opened)
    except FileNotFoundError:
        return None
    measured["delegations"] = [Delegation(**one) for one in measured["delegations"]]
    return measured


def write(file, measured):
    with open(file, "w") as opened:
        json.dump(measured, opened, indent=1, ensure_ascii=False)
        opened.write("\n")
