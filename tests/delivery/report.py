"""The table of docs/delivery.md."""

import collections
import pathlib
import re
import statistics

from scripted import Delegation

# Before the reason why a delegation of a peer could not be measured.
BROKEN = "not measured:"
PEER = "peer: Claude Code's own background command"

# As their vendors write them.
NAMES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    # For comparison: without Matsu.
    "background": PEER,
}

HEAD = """# Delivery

Whether the end of work reaches the agent that waits for it: made by `make delivery`, not by hand.

A **delegation** is an agent that a parent starts over MCP and waits for. Each is hit by one fault after its start and before its delivery. It is **delivered** when a reply or a hook shows the result to the parent, or its id to the next session in the same folder, without a person naming it. **Lost**: not within two minutes. **Twice**: shown as news again after the parent made another call. **Wrong receiver**: shown to a parent in another folder. **Seconds** are those from the end of the agent, or from the fault if that came later, to the delivery. **Turns** are calls of the parent from the start on, the start included.
"""

FAULTS = """
## The faults

| fault | what is done |
|---|---|
| none | nothing |
| parent killed | the client is killed in its wait; the next session in that folder learns of the result by its first reply (every second one) or by the hook at its prompt |
| daemon killed | the daemon is killed in the wait; the relay starts another |
| both stopped | both are killed; the next session comes after a while and starts the daemon |
| client timeout | the client gives up its call after a second, again and again |
| network cut | a client over HTTP loses every connection in its wait and comes back a second later |
| quota | the agent is out of quota and goes on when it is back |
| question | the agent asks; the parent is shown the question and answers it |
| question, parent killed | the agent asks when its parent is gone; the next session in that folder learns of it, answers, and reads the result |

The scripted parents do what the replies tell them to, as a model would that follows them. `tests/delivery` has all of it. Claude Code, Codex and Gemini CLI are the real programs with a scripted model, set up by `matsu connect`; for the network cut they have an entry for HTTP. Their seconds are not given, because the test does not know when the agent ended. After the network cut Claude Code 2.1.325 takes two minutes: in protocol version 2026-07-28 there is no way back to a broken stream, it notices the break only then, and its model calls again.
"""


def real(log):
    """What the test of the real command lines printed, a line for each delegation."""
    if not log or not pathlib.Path(log).exists():
        return []
    found = []
    line = re.compile(
        r"delivery: (\w+) \| ([\w ]+) \| hit (\d) \| delivered (\d) \| again (\d+) \| seconds ([\d.]+) \| turns (\d+)"
    )
    for client, fault, hit, delivered, again, seconds_, turns in line.findall(pathlib.Path(log).read_text()):
        one = Delegation(fault, "sqlite", NAMES.get(client, client), mark="", duplicates=int(again), turns=int(turns))
        # Only orders matter here: the clocks of the two programs are not compared.
        one.began = 1.0
        one.hit = 2.0 if hit == "1" else 0.0
        one.delivered = 3.0 if delivered == "1" else 0.0
        one.by = "model"
        found.append(one)
    return found


def text(found, about):
    options = about["options"]
    lines = [HEAD]
    lines.append(
        f"Measured on {about['began']} with {about['version']} on {about['machine']}: {len(found)} delegations in "
        f"{about['minutes']:.0f} minutes, {options.parallel} parents at once, agents that work {options.seconds:g} s, "
        f"both stopped for {options.away:g} s. `make delivery DELIVERY_COUNT={options.count}`.\n"
    )
    lines.append("| client | store | fault | delegations | hit | delivered | lost | twice | wrong receiver | seconds, median | seconds, most | turns, median |")
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|---|")
    groups = collections.OrderedDict()
    for one in found:
        groups.setdefault((one.client, one.store, one.fault), []).append(one)
    for (client, store, fault), all_ in groups.items():
        lines.append(row(client, store, fault, all_))
    own = [one for one in found if one.client != PEER]
    if own:
        lines.append(row("**all of Matsu**", "", "", own))
    if about["waited"]:
        lines.append(WAITING.format(minutes=about["waited"][0].seconds / 60))
        for one in about["waited"]:
            limit = f"{one.limit:g} s" if one.limit else "none"
            lines.append(f"| {one.client} | {limit} | {one.turns} | {one.cut} | {'yes' if one.is_delivered else '**no**'} |")
    if about["missing"]:
        lines.append("\nNot measured:\n")
        lines += [f"- {what}" for what in about["missing"]]
    if about["peers"]:
        lines.append(beside(about["peers"]))
    lines.append(FAULTS)
    return "\n".join(lines)


WAITING = """
## What a wait costs

A scripted client that gives itself this name and gives up calls after this time, with the plain entry of the README, waits {minutes:g} minutes for an agent. Turns of the model between the start and the result, both not counted:

| name in `clientInfo` | gives up after | turns | calls given up | delivered |
|---|---|---|---|---|"""


BESIDE = """
## Beside others

What other tools do with the same faults, measured on {began} with {versions} on {machine}, with a load of up to {load}, other work included: seconds would be fewer on an idle machine. The rows come from several runs, between which the harness was still being mended; rounds that its own errors or an overloaded machine spoiled were left out, and both runs of a row that was repeated for its load are counted. It is **delivered** when a request to the model of the parent, or of its next session in the same folder, contains the result without a person naming it; a scripted model answers and keeps every request. **Lost**: not within {lost} s. Each child works {works} s, some at once; both are stopped for {away} s. **Seconds** as above. **Requests** are those to the parent's model from the one that delegates on, without the one that has the result: the same as the turns above. The rows of Matsu are in the first table.

| peer | fault | delegations | hit | delivered | lost | twice | wrong receiver | seconds, median | seconds, most | requests, median |
|---|---|---|---|---|---|---|---|---|---|---|"""


def beside(measured):
    """The section about the peers, from what was measured of them."""
    versions = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    figures = {key: measured[key] for key in ("began", "machine", "load", "works", "away", "lost")}
    lines = [BESIDE.format(versions=versions, **figures)]
    groups = collections.OrderedDict()
    for one in measured["delegations"]:
        groups.setdefault((one.client, one.fault), []).append(one)
    for client in measured["how"]:
        for (who, fault), all_ in groups.items():
            if who == client:
                lines.append(peer_row(client, fault, all_))
        for one in measured["not_run"]:
            if one["client"] == client:
                lines.append(f"| {client} | {one['fault']} | not run: {one['reason']} " + "| " * 8 + "|")
    for one in measured["not_run"]:
        if one["client"] not in measured["how"]:
            lines.append(f"| {one['client']} | {one['fault']} | not run: {one['reason']} " + "| " * 8 + "|")
    remarks = [remark for (client, fault), all_ in groups.items() for remark in seen(client, fault, all_)]
    if remarks:
        lines.append("\nSeen besides:\n")
        lines += [f"- {remark}" for remark in remarks]
    lines.append("\nHow each was driven, with the real Claude Code as parent and as child:\n")
    lines += [f"- **{client}**: {how}." for client, how in measured["how"].items()]
    lines.append(f"\nNot run with any of them: {measured['left_out']}.")
    if measured.get("note"):
        lines.append(f"\n{measured['note']}.")
    return "\n".join(lines)


def peer_row(client, fault, all_):
    broken = [one for one in all_ if one.error.startswith(BROKEN)]
    whole = [one for one in all_ if one not in broken]
    if not whole:
        return f"| {client} | {fault} | {broken[0].error.replace(BROKEN, 'not run:')} " + "| " * 8 + "|"
    cells = row(client, "", fault, whole).strip("| ").split(" | ")
    if not any(one.delivered for one in whole):
        cells[-1] = "–"
    return "| " + " | ".join([cells[0], *cells[2:]]) + " |"


def seen(client, fault, all_):
    """What happened to results that were not delivered, and what could not be measured."""
    for what, number in collections.Counter(one.by for one in all_ if one.by and not one.delivered).items():
        yield f"{client}, {fault}: {what} ({number} of {len(all_)})"
    for what, number in collections.Counter(one.error for one in all_ if one.error).items():
        yield f"{client}, {fault}: {what} ({number} of {len(all_)})"


def with_peers(written, measured):
    """A report that was written before, with this section anew and nothing else changed."""
    start, end = written.find("\n## Beside others"), written.index("\n## The faults")
    return written[: end if start < 0 else start] + beside(measured) + "\n" + written[end:]


def seconds(one):
    return max(0.0, one.delivered - max(one.ended, one.hit if one.fault != "question" else one.ended))


def row(client, store, fault, all_):
    delivered = [one for one in all_ if one.delivered]
    took = [seconds(one) for one in delivered if one.ended]  # not measured of real clients
    cells = [
        client,
        {"sqlite": "SQLite", "postgres": "PostgreSQL"}.get(store, store),
        fault,
        len(all_),
        sum(one.is_hit() for one in all_),
        len(delivered),
        len(all_) - len(delivered),
        sum(one.duplicates > 0 for one in all_),
        sum(one.wrong > 0 for one in all_),
        f"{statistics.median(took):.2f}" if took else "–",
        f"{max(took):.2f}" if took else "–",
        f"{statistics.median(one.turns for one in all_):g}",
    ]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
