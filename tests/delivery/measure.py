#!/usr/bin/env python3
"""Measures how results reach the agents that wait for them, and writes docs/delivery.md.

    tests/delivery/measure.py --binary target/debug/matsu --count 10
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
import uuid

import peers
import report
import waiting
from home import Home
from scripted import FAULTS, Round

HERE = pathlib.Path(__file__).resolve().parent


def measure(options, store, url):
    """Every fault on one store; one home for each fault, so that none hides what another has left behind."""
    found = []
    for fault in options.faults:
        home = Home(options.binary, url() if url else None)
        try:
            home.serve()
            left = options.count
            while left > 0:
                size = min(left, options.parallel)
                began = time.monotonic()
                done = Round(home, store, fault, size, options.seconds, options.away).run()
                found += done
                left -= size
                delivered = sum(bool(one.delivered) for one in done)
                print(f"{store}, {fault}: {delivered} of {size} in {time.monotonic() - began:.0f} s", flush=True)
                for one in done:
                    if one.error or not one.delivered or one.wrong or one.duplicates:
                        print("  ", one, flush=True)
                if home.daemon is None:
                    home.daemon = None if home.server() else home.serve()
        finally:
            home.close()
    return found


def postgres_urls():
    base = os.environ.get("MATSU_TEST_POSTGRES")
    if not base:
        return None
    mark = "&" if "?" in base else "?"
    return lambda: f"{base}{mark}schema=delivery_{uuid.uuid4().hex[:12]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/debug/matsu")
    parser.add_argument("--count", type=int, default=10, help="delegations for each fault and store")
    parser.add_argument("--parallel", type=int, default=10, help="parents at once")
    parser.add_argument("--seconds", type=float, default=3, help="how long an agent works")
    parser.add_argument("--away", type=float, default=10, help="how long both are stopped")
    parser.add_argument("--stores", default="sqlite,postgres")
    parser.add_argument("--faults", default=";".join(FAULTS), help="separated by semicolons")
    parser.add_argument("--wait", type=float, default=0, help="measure what a wait of so many seconds costs a model")
    parser.add_argument("--waited", help="what tests/delivery/waiting.py printed, instead of measuring it now")
    parser.add_argument("--real", help="what the test of the real command lines printed")
    parser.add_argument("--peers", type=int, default=0, help="delegations for each fault of other tools")
    parser.add_argument("--peers-only", action="store_true", help="measure nothing else, and change only their section")
    parser.add_argument("--peers-measured", default=str(HERE / "peers/measured.json"), help="what was measured of them")
    parser.add_argument("--out", default=str(HERE / "../../docs/delivery.md"))
    options = parser.parse_args()
    options.faults = [fault for fault in options.faults.split(";") if fault]
    unknown = [fault for fault in options.faults if fault not in FAULTS]
    if unknown:
        parser.error(f"unknown faults {unknown}; expected some of {FAULTS}")
    if options.peers:
        peers.write(options.peers_measured, peers.measure(options.peers))
    beside = peers.read(options.peers_measured)
    if options.peers_only:
        if not beside:
            parser.error("--peers-only needs --peers, or a file in --peers-measured")
        out = pathlib.Path(options.out)
        out.write_text(report.with_peers(out.read_text(), beside))
        return 0
    began = datetime.datetime.now(datetime.UTC)
    found, missing = [], []
    if not beside:
        missing.append("other tools: `DELIVERY_PEERS=5`")
    for store in options.stores.split(","):
        url = postgres_urls() if store == "postgres" else None
        if store == "postgres" and url is None:
            missing.append("PostgreSQL: MATSU_TEST_POSTGRES names no server")
            continue
        found += measure(options, store, url)
    # At the end, because they may be measured at the same time.
    real = report.real(options.real)
    if not real:
        missing.insert(0, "the real command lines: `DELIVERY_REAL=5`")
    waited = waiting.measure(options.binary, options.wait) if options.wait else waiting.read(options.waited)
    if not waited:
        missing.append("what a wait costs: `DELIVERY_WAIT=1800`")
    found = real + found
    version = subprocess.run([options.binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    about = {
        "began": began.strftime("%Y-%m-%d"),
        "minutes": (datetime.datetime.now(datetime.UTC) - began).total_seconds() / 60,
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "version": version,
        "options": options,
        "missing": missing,
        "waited": waited,
        "peers": beside,
    }
    pathlib.Path(options.out).write_text(report.text(found, about))
    raw = pathlib.Path(options.out).with_suffix(".json")
    if os.environ.get("DELIVERY_RAW"):
        raw.write_text(json.dumps([one.__dict__ for one in found], indent=1))
    found = [one for one in found if one.client != report.PEER]
    bad = [one for one in found if not one.delivered or one.wrong or one.duplicates or not one.is_hit()]
    bad += [one for one in waited if not one.is_delivered]
    print(f"{len(found)} delegations, {len(bad)} of them not as promised; see {options.out}")
    return 1 if bad or not found else 0


if __name__ == "__main__":
    sys.exit(main())
