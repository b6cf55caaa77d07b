"""The official Python SDK over stdio against a running Matsu and a web on loopback: what research promises.

    research.py BEHAVIOUR DATA_DIR MATSU SITE_PORT ENGINE_PORT

A daemon must serve DATA_DIR, with SearXNG configured at ENGINE_PORT, where this script serves it. Every reply, errors
too, is checked against the tool's output schema. Fails with the first thing that is not as it should be.
"""

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse
from urllib.request import urlopen

import jsonschema
from mcp import Client, StdioServerParameters

NAME, DATA, MATSU, SITE, ENGINE = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
TEN = {
    "create_task", "queue_searches", "get_status", "stop_task", "get_materials", "calibration_metrics",
    "calibration_rollback", "get_auth_queue", "resolve_auth", "feedback",
}
POLLING = "long polling token use"
# Each is written about by several sites, which do not agree.
NAMES = (
    "Long polling and token use", "Green tea and blood pressure", "Durable queues", "ロングポーリングとトークン消費", "緑茶と血圧",
    "롱 폴링과 토큰 사용량", "Long Polling und Tokenverbrauch", "Grüner Tee und Blutdruck",
)


def url(site, path):
    return f"http://127.0.0.{site + 1}:{SITE}/{path}"


def article(site, n=0, topic="long-polling"):
    return url(site, f"en/{topic}/{n}")


class Engine(BaseHTTPRequestHandler):
    """SearXNG's JSON API. A query finds what `results` has for it; others are passed on to the test site."""

    results, delays, broken, asked = {}, {}, False, []
    busy, at_once = 0, 0
    gate, lock = threading.Event(), threading.Lock()

    def do_GET(self):
        with Engine.lock:
            Engine.busy += 1
            Engine.at_once = max(Engine.at_once, Engine.busy)
        try:
            self.answer()
        finally:
            with Engine.lock:
                Engine.busy -= 1

    def answer(self):
        query = parse_qs(urlparse(self.path).query).get("q", [""])[0]
        Engine.asked.append((query, time.time()))
        if query in Engine.delays:
            Engine.gate.wait(Engine.delays[query])
        if Engine.broken:
            self.send_error(500)
            return
        if query in Engine.results:
            found = [{"url": each, "title": each, "content": ""} for each in Engine.results[query]]
            body = json.dumps({"query": query, "results": found, "unresponsive_engines": []}).encode()
        else:
            body = urlopen(f"http://127.0.0.1:{SITE}/searxng{self.path}").read()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        try:
            self.wfile.write(body)
        except BrokenPipeError:
            pass

    def log_message(self, *_):
        pass


def matsu(*args, given=None):
    ran = subprocess.run([MATSU, "--data-dir", DATA, "--json", *args], input=given, capture_output=True, text=True)
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


class Tools:
    """One connection; replies as dictionaries. Counts calls, and bytes of one half of the replies."""

    def __init__(self, client, tools):
        self.client, self.calls, self.bytes = client, 0, 0
        self.schemas = {tool.name: jsonschema.Draft202012Validator(tool.output_schema) for tool in tools}

    async def __call__(self, tool, /, **arguments):
        reply = await self.client.call_tool(tool, arguments)
        said = reply.structured_content
        text = "".join(block.text for block in reply.content)
        assert json.loads(text) == said, "both halves carry the same"
        self.calls, self.bytes = self.calls + 1, self.bytes + len(text.encode())
        assert reply.is_error == (not said["ok"]), said
        self.schemas[tool].validate(said)
        return said

    async def task(self, **config):
        return (await self("create_task", query="Does long polling cut token use?", config=config))["task_id"]

    async def queue(self, task, *queries, **options):
        return await self("queue_searches", task_id=task, queries=list(queries), options=options)

    async def done(self, task):
        for _ in range(40):
            said = await self("get_status", task_id=task, wait=30, wait_for="all", detail="summary")
            if said["returned_because"] in ("idle", "terminal"):
                return await self("get_status", task_id=task)
        raise AssertionError(f"never done: {said}")

    async def until(self, task, wanted, within=30):
        end, since = time.monotonic() + within, 0
        while time.monotonic() < end:
            said = await self("get_status", task_id=task, wait=10, wait_for="any", since=since)
            since = said["next"]["since"]
            whole = await self("get_status", task_id=task)
            if wanted(whole):
                return whole
        raise AssertionError(f"never so: {whole}")

    async def materials(self, task, **options):
        return await self("get_materials", task_id=task, options={"detail": "full", **options})

    async def researched(self, query=POLLING, urls=None, **options):
        """A task whose one search has ended."""
        if urls is not None:
            Engine.results[query] = urls
        task = await self.task()
        await self.queue(task, query, engines=["searxng"], **options)
        return task, await self.done(task)


@asynccontextmanager
async def connected():
    arguments = ["--data-dir", str(DATA), "mcp", "--tools", "research"]
    async with Client(StdioServerParameters(command=MATSU, args=arguments, env=dict(os.environ))) as client:
        yield Tools(client, (await client.list_tools()).tools)


def of(status, query):
    return next(search for search in status["searches"] if search["query"] == query)


def refused(said, code, field=None):
    assert said["ok"] is False and said["error_code"] == code, said
    assert field is None or said["details"]["param_name"] == field, said


async def exactly_ten_tools_with_schemas(m):
    tools = (await m.client.list_tools()).tools
    assert {tool.name for tool in tools} == TEN and len(tools) == 10, tools
    for tool in tools:
        assert tool.input_schema["type"] == "object" and tool.output_schema["type"] == "object", tool


async def budgets_are_reported_and_enforced(m):
    made = await m("create_task", query="A question")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", made["created_at"]), made
    assert made["budget"] == {"max_pages": 120, "max_seconds": 1200}, made
    assert made["watch"].endswith("/tasks/" + made["task_id"]) and urlparse(made["watch"]).hostname == "127.0.0.1", made
    task = await m.task(budget={"max_pages": 2, "max_seconds": 300})
    await m.queue(task, POLLING, engines=["searxng"])
    status = await m.done(task)
    budget = status["budget"]
    assert (budget["pages_used"], budget["pages_limit"], budget["time_limit_seconds"]) == (2, 2, 300), budget
    assert of(status, POLLING)["pages_fetched"] == 2 and of(status, POLLING)["error_code"] == "BUDGET_EXHAUSTED"


async def a_hundred_searches_are_queued_at_once(m):
    task = await m.task()
    queries = [f"query number {n}" for n in range(100)]
    Engine.delays = {query: 5 for query in queries}
    began = time.monotonic()
    said = await m.queue(task, *queries, engines=["searxng"])
    assert time.monotonic() - began < 1, time.monotonic() - began
    assert said["queued_count"] == 100 and len(set(said["search_ids"])) == 100, said
    status = await m("get_status", task_id=task)
    assert {search["status"] for search in status["searches"]} <= {"queued", "running"}, status
    assert status["queue"]["total"] == 100
    await m("stop_task", task_id=task, mode="immediate")


async def ten_thousand_queued_searches_slow_no_call_down(m):
    Engine.delays = {f"query {n}": 60 for n in range(10_200)}
    busy, task = await m.task(), await m.task()
    for start in range(0, 10_000, 100):
        await m.queue(busy, *(f"query {n}" for n in range(start, start + 100)), engines=["searxng"])
    began = time.monotonic()
    said = await m.queue(task, *(f"query {n}" for n in range(10_000, 10_100)), engines=["searxng"])
    queued = time.monotonic() - began
    assert said["queued_count"] == 100 and queued < 0.5, queued
    for asked in (task, busy):
        began = time.monotonic()
        status = await m("get_status", task_id=asked)
        assert time.monotonic() - began < 0.5, time.monotonic() - began
    assert status["queue"]["total"] == 10_000 and len(status["searches"]) == 100, status["queue"]["total"]
    for each in (busy, task):
        await m("stop_task", task_id=each, mode="immediate")


async def bad_input_is_named_and_queues_nothing(m):
    task = await m.task()
    for queries, options, field in [
        ([], {}, "queries"), (["a", " "], {}, "queries[1]"), (["a", "x" * 501], {}, "queries[1]"),
        (["a"], {"engines": ["nope"]}, "options.engines[0]"), (["a"], {"priority": "urgent"}, "options.priority"),
        (["a"], {"max_pages": 0}, "options.max_pages"), (["a"], {"pages": 3}, "options.pages"),
    ]:
        refused(await m("queue_searches", task_id=task, queries=queries, options=options), "INVALID_PARAMS", field)
    assert (await m("get_status", task_id=task))["queue"]["total"] == 0
    refused(await m("queue_searches", task_id="task_nope", queries=["a"]), "TASK_NOT_FOUND")
    refused(await m("create_task", query="  "), "INVALID_PARAMS", "query")
    refused(await m("create_task", query="q", config={"bugdet": {}}), "INVALID_PARAMS", "config.bugdet")


async def one_id_names_a_search_everywhere(m):
    task = await m.task()
    queued = await m.queue(task, POLLING, "nothing at all zzz", engines=["searxng"])
    status = await m.done(task)
    ids = set(queued["search_ids"])
    assert {search["id"] for search in status["searches"]} == ids
    assert {item["id"] for item in status["queue"]["items"]} == ids


async def equal_queries_are_queued_once(m):
    Engine.delays = {"same thing": 20}
    task = await m.task()
    first = await m.queue(task, "same thing", engines=["searxng"])
    again = await m.queue(task, "SAME  Thing", "ｓａｍｅ　thing", engines=["searxng"])
    assert again["queued_count"] == 0, again
    assert [skip["search_id"] for skip in again["skipped"]] == first["search_ids"] * 2, again
    Engine.gate.set()
    await m.done(task)
    assert (await m.queue(task, "same thing", engines=["searxng"]))["queued_count"] == 1


async def priority_then_order_and_two_at_a_time(m):
    Engine.results = {f"{rank} {n}": [] for rank in ("low", "medium", "high") for n in range(3)} | {"first a": [], "first b": []}
    Engine.delays = {"first a": 20, "first b": 20}
    task = await m.task()
    await m.queue(task, "first a", "first b", engines=["searxng"])
    await m.until(task, lambda status: status["queue"]["running"] == 2)
    for rank in ("low", "medium", "high"):
        await m.queue(task, *(f"{rank} {n}" for n in range(3)), engines=["searxng"], priority=rank)
    Engine.gate.set()
    running = 0
    while True:
        status = await m("get_status", task_id=task)
        running = max(running, status["queue"]["running"])
        if status["queue"]["running"] + status["queue"]["depth"] == 0:
            break
    assert running <= 2, running
    started = {item["query"]: item["started_at"] for item in status["queue"]["items"]}
    wanted = [f"{rank} {n}" for rank in ("high", "medium", "low") for n in range(3)]
    times = [started[query] for query in wanted]
    assert times == sorted(times), list(zip(wanted, times))
    asked = [query for query, _ in Engine.asked if not query.startswith("first")]
    assert sorted(asked) == sorted(wanted), "each was asked exactly once"
    assert Engine.at_once == 1, "an engine is asked one thing at a time"


async def a_wait_wakes_when_something_changes(m):
    Engine.delays = {"held": 60}
    Engine.results = {"held": [], "more": []}
    task = await m.task()
    began = time.monotonic()
    await m("get_status", task_id=task)
    assert time.monotonic() - began < 0.3
    await m.queue(task, "held", engines=["searxng"])
    status = await m.until(task, lambda status: status["queue"]["running"] == 1)
    await asyncio.sleep(1.2)
    since = (await m("get_status", task_id=task))["revision"]
    began = time.monotonic()
    said = await m("get_status", task_id=task, wait=2, wait_for="any", since=since)
    took = time.monotonic() - began
    assert said["returned_because"] == "timeout" and 1.5 < took < 2.5, (took, said)

    async def woken(act, *stamps):
        """The longest time from something being stored, by the server's own stamp, to the wait for it being back."""
        # Progress is shown at most once a second: what is under way must have been said first.
        await asyncio.sleep(1.5)
        before = await m("get_status", task_id=task)
        known = {item.get(stamp) for item in before["queue"]["items"] for stamp in stamps}
        took, since = {}, before["revision"]
        wait = lambda: m("get_status", task_id=task, wait=20, wait_for="any", since=since)
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await act()
        while True:
            said, back = await waiting, time.time()
            assert said["returned_because"] in ("changed", "idle", "terminal"), said
            for stamp in set(stamps) - set(took):
                new = [item[stamp] for item in said["queue"]["items"] if item.get(stamp) and item[stamp] not in known]
                if new:
                    took[stamp] = back - min(datetime.fromisoformat(each).timestamp() for each in new)
            if len(took) == len(stamps):
                return max(took.values())
            since = said["revision"]
            waiting = asyncio.create_task(wait())

    async def runs(query):
        Engine.gate.clear()
        Engine.delays[query] = 60
        await m.queue(task, query, engines=["searxng"])
        await m.until(task, lambda status: status["queue"]["running"] == 1)

    def fail():
        Engine.broken = True
        Engine.gate.set()

    took = await woken(lambda: m.queue(task, "more", engines=["searxng"]), "created_at", "started_at")
    assert took < 0.2, (took, "an enqueue and a start")
    took = await woken(lambda: asyncio.to_thread(Engine.gate.set), "completed_at")
    assert took < 0.2, (took, "a completion")
    await m.done(task)
    await runs("cancelled")
    took = await woken(lambda: m("stop_task", task_id=task, mode="immediate"), "completed_at")
    assert took < 0.2, (took, "a cancel")
    task = await m.task()
    await runs("fails")
    took = await woken(lambda: asyncio.to_thread(fail), "completed_at")
    assert took < 0.2, (took, "a failure")


async def everyone_wakes_and_nothing_is_lost(m):
    Engine.delays, Engine.results = {"held": 60}, {"held": []}
    task = await m.task()
    await m.queue(task, "held", engines=["searxng"])
    await m.until(task, lambda status: status["queue"]["running"] == 1)
    await asyncio.sleep(1.2)
    since = (await m("get_status", task_id=task))["revision"]
    async with connected() as other:
        waits = [asyncio.create_task(each("get_status", task_id=task, wait=20, since=since)) for each in (m, other)]
        await asyncio.sleep(0.5)
        Engine.gate.set()
        for said in await asyncio.gather(*waits):
            assert said["searches"][0]["status"] == "partial", said
    async with connected() as fresh:
        Engine.gate.clear()
        Engine.delays["held again"], Engine.results["held again"] = 60, []
        await m.queue(task, "held again", engines=["searxng"])
        await m.until(task, lambda status: status["queue"]["running"] == 1)
        said = await fresh("get_status", task_id=task, wait=2, wait_for="all")
        assert said["waited_ms"] >= 1900, "the first wait of a client that knows nothing waits, too"
        Engine.gate.set()
        await m.done(task)
    late = await m("get_status", task_id=task, wait=20, since=since)
    assert late["waited_ms"] < 500 and late["searches"], "a change between two calls is returned at once"
    for wait in (61, -1):
        refused(await m("get_status", task_id=task, wait=wait), "INVALID_PARAMS", "wait")
    began = time.monotonic()
    refused(await m("get_status", task_id="task_nope", wait=30), "TASK_NOT_FOUND")
    assert time.monotonic() - began < 1


async def an_idle_task_does_not_hold_its_caller(m):
    task = await m.task()
    began = time.monotonic()
    said = await m("get_status", task_id=task, wait=30)
    assert time.monotonic() - began < 1 and said["returned_because"] in ("idle", "changed"), said
    said = await m("get_status", task_id=task, wait=30, since=said["revision"])
    assert time.monotonic() - began < 2 and said["returned_because"] == "idle", said


async def a_failure_reads_as_failed_and_work_goes_on(m):
    Engine.broken = True
    task = await m.task()
    await m.queue(task, "broken", engines=["searxng"])
    status = await m.done(task)
    assert of(status, "broken")["status"] == "failed", status
    assert of(status, "broken")["error_code"] in ("SERP_SEARCH_FAILED", "ALL_ENGINES_BLOCKED"), status
    assert "searxng" in of(status, "broken")["error"] and "500" in of(status, "broken")["error"], status
    assert any("500" in warning for warning in status["warnings"]), status
    await m.queue(task, "waiting documents", engines=["local"])
    search = of(await m.done(task), "waiting documents")
    assert search["status"] in ("partial", "satisfied") and search["pages_fetched"] > 0, search


async def a_graceful_stop_keeps_what_runs(m):
    slow = ("long polling, slowly", "token use, slowly")
    Engine.results = {query: [url(3 * n + k, "slow/700") for k in range(3)] for n, query in enumerate(slow)}
    task = await m.task()
    await m.queue(task, *slow, engines=["searxng"])
    await m.until(task, lambda status: status["queue"]["running"] == 2)
    await m.queue(task, "later", "and later", engines=["searxng"], priority="low")
    said = await m("stop_task", task_id=task, reason="completed", mode="graceful")
    assert said["final_status"] == "completed" and 0 < said["waited_ms"] < 30_000, said
    assert said["cancelled"] == {"queued": 2, "running": 0}, said
    status = await m("get_status", task_id=task)
    for query in slow:
        assert of(status, query)["status"] in ("satisfied", "partial") and of(status, query)["pages_fetched"] == 3, status
    for query in ("later", "and later"):
        assert of(status, query)["status"] == "cancelled", status
    assert {query for query, _ in Engine.asked} == set(slow), "nothing was begun after the stop"
    found = await m.materials(task)
    assert found["total"] > 0 and all(claim["verification"] for claim in found["claims"]), found
    unverified = [claim for claim in found["claims"] if claim["verification"] == "unverified"]
    assert all("confidence" not in claim for claim in unverified), unverified
    refused(await m.queue(task, "more"), "TASK_STOPPED")


async def an_immediate_stop_ends_everything_of_its_task_alone(m):
    slow = ("slow", "slow too", "and slow")
    Engine.results = {query: [url(n, "slow/3000") for n in range(6)] for query in slow}
    Engine.results |= {"other": [url(0, "slow/600")], "and another": [url(1, "slow/600")]}
    task, other = await m.task(), await m.task()
    await m.queue(task, *slow, engines=["searxng"])
    await m.until(task, lambda status: status["queue"]["running"] >= 1)
    began = time.monotonic()
    said = await m("stop_task", task_id=task, reason="user_cancelled", mode="immediate")
    assert time.monotonic() - began < 5 and said["final_status"] == "cancelled", said
    status = await m("get_status", task_id=task)
    assert [search["status"] for search in status["searches"]] == ["cancelled"] * 3, status
    await m.queue(other, "other", "and another", engines=["searxng"])
    await m.until(other, lambda status: status["queue"]["running"] == 2)
    status = await m.done(other)
    assert [search["pages_fetched"] for search in status["searches"]] == [1, 1], "both workers still serve"
    assert (await m.materials(task))["total"] == 0


async def soft_cleanup_touches_nothing_of_others(m):
    own, other = "long polling of mine", "long polling of theirs"
    Engine.results = {own: [article(0), article(1)], other: [article(0), article(1)]}
    mine, theirs = await m.task(), await m.task()
    await m.queue(mine, own, engines=["searxng"])
    await m.queue(theirs, other, engines=["searxng"])
    await m.done(mine)
    await m.done(theirs)
    before = await m.materials(theirs, include_graph=True, include_fragments=True, limit=200)
    said = await m("stop_task", task_id=mine, mode="immediate", reason="user_cancelled")
    assert said["cleaned"]["pages"] == 0, said
    assert (await m.materials(mine))["total"] == 0
    assert await m.materials(theirs, include_graph=True, include_fragments=True, limit=200) == before


async def orphans_go_and_nothing_else(m):
    own, other = "long polling of mine", "long polling of theirs"
    Engine.results = {own: [article(0), article(3)], other: [article(0)]}
    mine, theirs = await m.task(), await m.task()
    await m.queue(mine, own, engines=["searxng"])
    await m.queue(theirs, other, engines=["searxng"])
    await m.done(mine)
    await m.done(theirs)
    before = await m.materials(theirs, include_fragments=True)
    assert matsu("gc", "--dry-run")["pages"] == 0
    await m("stop_task", task_id=mine, cleanup="soft")
    dry = matsu("gc", "--dry-run")
    assert dry["pages"] == 1 and dry["fragments"] >= 1, dry
    assert dry["listed"]["pages"] == [article(3)] and len(dry["listed"]["fragments"]) == dry["fragments"], dry
    gone = matsu("gc")
    assert {**gone, "dry_run": True} == dry, (gone, dry)
    assert matsu("gc")["pages"] == 0, "once is enough"
    assert await m.materials(theirs, include_fragments=True) == before


async def a_killed_daemon_costs_nothing(m):
    slow = "long polling, slowly"
    Engine.results = {slow: [article(0), article(1), article(2), url(3, "slow/2500"), url(4, "slow/2500"), article(5)]}
    Engine.results["and then"] = [article(0)]
    await m("feedback", action="domain_block", domain_pattern="blocked.example.org", reason="for the test")
    task = await m.task()
    await m.queue(task, slow, engines=["searxng"])
    before = await m.until(task, lambda status: status["metrics"]["total_pages"] >= 3)
    await m.queue(task, "and then", engines=["searxng"], priority="low")
    pid = json.loads((DATA / "server.json").read_text())["pid"]
    subprocess.run(["kill", "-9", str(pid)], check=True)
    for _ in range(100):
        try:
            status = await m.done(task)
            break
        except Exception:
            await asyncio.sleep(0.2)
    search = of(status, slow)
    assert search["pages_fetched"] == 6 and status["budget"]["pages_used"] == 6, status
    assert status["queue"]["running"] == 0 and before["metrics"]["total_claims"] <= status["metrics"]["total_claims"]
    assert status["metrics"]["total_pages"] == 6 and of(status, "and then")["status"] == "partial", status
    claims = (await m.materials(task, limit=200))["claims"]
    listed = [(claim["origin"]["fragment_id"], claim["text"]) for claim in claims]
    assert len(listed) == len(set(listed)) == status["metrics"]["total_claims"], "nothing is there twice"
    rules = matsu("call", "feedback", json.dumps({"action": "domain_clear_override", "domain_pattern": "blocked.example.org", "reason": "x"}))
    assert rules["cleared_rules"] == 1, "the rule was still there"
    assert len(matsu("call", "get_auth_queue", "{}")["items"]) == 0


async def a_budget_of_five_pages_is_five_pages(m):
    Engine.results = {f"q{n}": [article(site, n * 4 + k) for site in range(6) for k in range(4)] for n in range(2)}
    task = await m.task(budget={"max_pages": 5})
    await m.queue(task, "q0", "q1", engines=["searxng"])
    status = await m.done(task)
    assert status["budget"]["pages_used"] == 5, status
    assert any("budget" in warning for warning in status["warnings"]), status
    Engine.results["next"] = [article(0, 11)]
    await m.queue(task, "next", engines=["searxng"])
    assert of(await m.done(task), "next")["error_code"] == "BUDGET_EXHAUSTED"


async def sites_are_asked_politely(m):
    Engine.results = {
        "a": [article(0, n) for n in range(3)] + [url(0, "private-area/1"), url(1, "status/429")],
        "b": [article(0, n) for n in range(3, 6)],
    }
    task = await m.task()
    await m.queue(task, "a", "b", engines=["searxng"])
    await m.until(task, lambda status: status["metrics"]["total_pages"] >= 6)
    await m("stop_task", task_id=task, mode="immediate")
    times = sorted(at for query, at in Engine.asked if query in "ab")
    assert len(times) == 2 and times[1] - times[0] >= 1, times


async def a_site_has_its_share_of_a_day(m):
    Engine.results = {query: [article(0, n) for n in range(at, at + 4)] + [article(1, at)] for query, at in (("a", 0), ("b", 4))}
    task = await m.task()
    await m.queue(task, "a", "b", engines=["searxng"])
    status = await m.done(task)
    assert status["metrics"]["total_pages"] == 3 + 2, status


async def a_claim_does_not_confirm_itself(m):
    task, _ = await m.researched("long polling in one source", [article(0)])
    claims = (await m.materials(task))["claims"]
    assert claims
    for claim in claims:
        assert claim["verification"] == "unverified", claim
        assert not {"confidence", "uncertainty", "controversy"} & claim.keys(), claim
        assert claim["evidence_count"] == 0 and claim["origin"]["edge_id"].startswith("e_")


async def three_sources_satisfy(m):
    for count, wanted in [(1, "partial"), (2, "partial"), (3, "satisfied")]:
        query = f"long polling token use, {count} of them"
        _, status = await m.researched(query, [article(site, 5) for site in range(count)])
        search = status["searches"][0]
        assert search["status"] == wanted, (count, search)
        assert abs(search["satisfaction_score"] - min(0.8, 0.8 * count / 3)) < 0.001, search


async def dispute(m, task):
    """A person marks what two sources say about one claim: one supports it, one refutes it."""
    for claim in (await m.materials(task, limit=200))["claims"]:
        sources = {edge["domain"]: edge["edge_id"] for edge in claim["evidence"]}
        if len(sources) >= 2:
            for edge_id, relation in zip(sources.values(), ("supports", "refutes")):
                await m("feedback", action="edge_correct", edge_id=edge_id, correct_relation=relation)
            return claim["id"]
    raise AssertionError("no claim has evidence of two sources")


def turned(edge):
    """Another relation than the edge has."""
    return "supports" if edge["relation"] == "neutral" else "neutral"


async def materials_are_bounded_and_every_claim_resolves(m):
    for n in range(40):
        own = " ".join(hashlib.sha256(f"{n} {k}".encode()).hexdigest()[:7] for k in range(25))
        text = f"Study group{n % 4} of long polling counted the token use of {own}."
        (DATA.parent / "documents" / f"study-{n}.md").write_text(f"# Study {n}\n\n{text}\n")
    task = await m.task(budget={"max_pages": 400})
    await m.queue(task, POLLING, engines=["searxng"])
    await m.queue(task, *(f"study group{n} token" for n in range(4)), engines=["local"], max_pages=100)
    await m.done(task)
    seen, cursor, pages = [], None, 0
    while True:
        options = {"include_fragments": True} | ({"cursor": cursor} if cursor else {})
        said = await m.materials(task, **options)
        size = len(json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode())
        assert size <= 16 * 1024, size
        fragments = {fragment["id"]: fragment for fragment in said["fragments"]}
        for claim in said["claims"]:
            fragment = fragments[claim["origin"]["fragment_id"]]
            assert fragment["url"] == claim["origin"]["url"].strip() and claim["origin"]["url"]
            assert all(edge["edge_id"] and edge["url"] for edge in claim["evidence"])
        seen += [claim["id"] for claim in said["claims"]]
        pages, cursor = pages + 1, said["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == said["total"] > 20 and pages > 1, (len(seen), pages)
    await dispute(m, task)
    contested = await m.materials(task, only="contested")
    assert contested["total"] > 0 and all(claim["controversy"] > 0 for claim in contested["claims"])
    sure = await m.materials(task, min_confidence=0.6)
    assert all(claim["confidence"] >= 0.6 for claim in sure["claims"])
    prose = (await m.materials(task, format="narrative"))["narrative"]
    assert re.search(r"\[\d+\].*\(confidence 0\.\d+", prose) and "## Sources" in prose, prose[:500]


async def three_hundred_and_thirty_three_claims_fit(m):
    for n in range(333):
        own = " ".join(hashlib.sha256(f"{n} {k}".encode()).hexdigest()[:7] for k in range(25))
        text = f"Ledger group{n % 12} counted rice for {own}."
        (DATA.parent / "documents" / f"ledger-{n}.md").write_text(f"---\nurl: https://s{n % 40}.example{n % 40}.org/{n}\n---\n# Case {n}\n\n{text}\n")
    task = await m.task(budget={"max_pages": 700})
    await m.queue(task, *(f"ledger group{n} rice" for n in range(12)), engines=["local"], max_pages=200)
    await m.done(task)
    seen, cursor, m.bytes = [], None, 0
    while True:
        m.bytes = 0
        said = await m.materials(task, detail="compact", **({"cursor": cursor} if cursor else {}))
        assert m.bytes <= 16 * 1024, m.bytes
        assert len(said["claims"]) >= 25 or said["next_cursor"] is None, len(said["claims"])
        seen += [claim["id"] for claim in said["claims"]]
        cursor = said["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == said["total"] == said["summary"]["total_claims"] >= 333, (len(seen), said["total"])
    said = await m("get_status", task_id=task, detail="summary")
    assert len(json.dumps(said).encode()) <= 1024, said


async def five_searches_cost_few_calls_and_bytes(m):
    task = (await m("create_task", query="Does long polling cut token use?"))["task_id"]
    queries = [POLLING, "green tea blood pressure", "queue leases worker", "polling every three seconds", "tea sleep diary"]
    await m.queue(task, *queries, engines=["searxng"])
    while True:
        said = await m("get_status", task_id=task, wait=50, wait_for="all", detail="summary")
        if said["returned_because"] != "timeout":
            break
    assert said["waiting_for"] == [] and said["metrics"]["satisfied_count"] == 5, said
    materials = await m.materials(task)
    assert len(materials["claims"]) >= 10, materials
    assert m.calls <= 5 and m.bytes <= 20 * 1024, (m.calls, m.bytes)
    part = await m.materials(task, limit=9)
    assert len(part["claims"]) == 9 and part["next_cursor"] and part["total"] == materials["total"], part


async def a_blocked_domain_stays_blocked(m):
    Engine.results = {f"long polling try {n}": [article(1, n), article(2, n)] for n in range(4)}

    async def domains(n):
        task = await m.task()
        await m.queue(task, f"long polling try {n}", engines=["searxng"])
        await m.done(task)
        graph = (await m.materials(task, include_fragments=True, limit=200))["fragments"]
        return {urlparse(fragment["url"]).hostname for fragment in graph}

    rule = {"domain_pattern": "127.0.0.2", "reason": "for the test"}
    assert (await m("feedback", action="domain_block", **rule))["rule_id"].startswith("dor_")
    assert await domains(0) == {"127.0.0.3"}
    subprocess.run(["kill", "-9", str(json.loads((DATA / "server.json").read_text())["pid"])], check=True)
    for _ in range(100):
        try:
            await m("get_auth_queue")
            break
        except Exception:
            await asyncio.sleep(0.2)
    assert await domains(1) == {"127.0.0.3"}, "after a restart too"
    await m("feedback", action="domain_unblock", **rule)
    assert await domains(2) == {"127.0.0.2", "127.0.0.3"}
    assert (await m("feedback", action="domain_clear_override", **rule))["cleared_rules"] == 2
    for pattern in ("*", "*.com", "*.jp", "co.uk", "*.github.io"):
        refused(await m("feedback", action="domain_block", domain_pattern=pattern, reason="x"), "INVALID_PARAMS", "domain_pattern")
    log = matsu("feedback")["items"]
    assert [entry["action"] for entry in log] == ["domain_clear_override", "domain_unblock", "domain_block"], log
    assert all(entry["reason"] == "for the test" for entry in log)


async def corrections_show_at_once(m):
    task, _ = await m.researched(urls=[article(site) for site in range(4)])
    claims = (await m.materials(task, limit=200))["claims"]
    claim = next(claim for claim in claims if claim["evidence"])
    edge = claim["evidence"][0]
    await m("feedback", action="claim_reject", claim_id=claim["id"], reason="wrong")
    assert (await m.materials(task, only="adopted"))["total"] == len(claims) - 1
    await m("feedback", action="claim_restore", claim_id=claim["id"])
    assert (await m.materials(task, only="adopted"))["total"] == len(claims)
    same = await m("feedback", action="edge_correct", edge_id=edge["edge_id"], correct_relation=edge["relation"])
    assert "sample_id" not in same, same
    other = {"supports": "refutes", "refutes": "supports", "neutral": "supports"}[edge["relation"]]
    said = await m("feedback", action="edge_correct", edge_id=edge["edge_id"], correct_relation=other)
    assert said["previous_relation"] == edge["relation"] and said["sample_id"].startswith("nlc_"), said
    now = next(each for each in (await m.materials(task, limit=200))["claims"] if each["id"] == claim["id"])
    assert now["confidence"] == said["claim"]["confidence"] != claim.get("confidence"), (now, said)
    corrected = next(each for each in now["evidence"] if each["edge_id"] == edge["edge_id"])
    assert corrected["probability"] == 1 and corrected["is_corrected"], corrected
    refused(await m("feedback", action="edge_correct", edge_id=claim["origin"]["edge_id"], correct_relation="refutes"), "INVALID_PARAMS")
    refused(await m("feedback", action="claim_reject", claim_id="c_nope", reason="x"), "RESOURCE_NOT_FOUND")


async def a_page_that_needs_a_login_is_one_item(m):
    Engine.results = {"a": [url(0, "members/2"), article(1)], "b": [url(0, "members/2")]}
    task = await m.task()
    queued = await m.queue(task, "a", "b", engines=["searxng"])
    status = await m.until(task, lambda status: status["searches_by_status"].get("awaiting_auth") == 2)
    assert status["auth_queue"]["pending_count"] == 1 and status["metrics"]["total_pages"] == 1, status
    items = [
        (await m("get_auth_queue", task_id=task))["items"],
        (await m("get_auth_queue", group_by="domain"))["groups"]["127.0.0.1"],
        next(iter((await m("get_auth_queue", group_by="type"))["groups"].values())),
    ]
    assert all(len(each) == 1 and each[0]["queue_id"].startswith("iq_") for each in items), items
    assert {blocked["search_id"] for blocked in items[0][0]["blocked"]} == set(queued["search_ids"])
    assert (await m("get_auth_queue", priority_filter="low"))["total_count"] == 0


async def a_finished_login_lets_its_searches_go_on(m):
    Engine.results = {"long polling members": [url(0, "members/0")], "b": [url(1, "challenge/captcha")], "c": [url(2, "members/4")]}
    task = await m.task()
    queued = await m.queue(task, *Engine.results, engines=["searxng"])
    await m.until(task, lambda status: status["searches_by_status"].get("awaiting_auth") == 3)
    assert matsu("auth", "cookies", "127.0.0.1", given="session=open-sesame")["kept"] == 1
    said = await m("resolve_auth", target="domain", domain="127.0.0.1", action="complete")
    assert said["requeued_jobs"] == queued["search_ids"][:1] and said["resolved_count"] == 1, said
    item = (await m("get_auth_queue", group_by="domain"))["groups"]["127.0.0.2"][0]["queue_id"]
    said = await m("resolve_auth", queue_id=item, action="skip")
    assert said["requeued_jobs"] == queued["search_ids"][1:2], said
    refused(await m("resolve_auth", queue_id="iq_nope", action="complete"), "RESOURCE_NOT_FOUND")
    ended = lambda status: (of(status, "long polling members")["status"], of(status, "b")["status"]) == ("partial", "failed")
    await m.until(task, ended)
    assert "Only members read this" in json.dumps(await m.materials(task, limit=200, include_fragments=True))
    status = await m.done(task)
    assert of(status, "c")["status"] == "failed", "a login that is not done expires by itself"


async def calibration_is_measured_and_can_be_undone(m):
    data = {"source": "judge", "predictions": [0.9, 0.2, 0.0, 1.0], "labels": [1, 0, 0, 1]}
    said = await m("calibration_metrics", action="evaluate", data=data)
    brier = sum((p - y) ** 2 for p, y in zip(data["predictions"], data["labels"])) / 4
    assert abs(said["brier_score"] - brier) < 1e-6 and abs(said["expected_calibration_error"] - 0.075) < 1e-6, said
    assert sum(bin["count"] for bin in said["bins"]) == 4 and len(said["bins"]) == 10
    task = await m.task()
    await m.queue(task, *NAMES, engines=["searxng"], max_pages=12)
    await m.done(task)
    edges = [edge for claim in (await m.materials(task, limit=200))["claims"] for edge in claim["evidence"]]
    assert len(edges) >= 20, len(edges)
    for edge in edges[:20]:
        await m("feedback", action="edge_correct", edge_id=edge["edge_id"], correct_relation=turned(edge))
    stats = (await m("calibration_metrics", action="get_stats"))["stats"]["sources"]["judge"]
    assert stats["samples_total"] == 20 and len(stats["versions"]) == 2, stats
    back = await m("calibration_rollback", source="judge", version=1, reason="for the test")
    assert back["rolled_back_to"] == 1, back
    again = (await m("calibration_metrics", action="get_stats"))["stats"]
    assert again["sources"]["judge"]["version_in_force"] == 1 and again["total_rollbacks"] >= 1, again
    refused(await m("calibration_rollback", source="judge", version=99), "CALIBRATION_ERROR")


async def pages_that_give_orders_are_data(m):
    kinds = ["plain", "hidden", "comment", "tag", "zero-width", "tool", "link"]
    task, status = await m.researched(urls=[url(site, f"injection/{kind}") for site, kind in enumerate(kinds[:6])] + [url(0, "injection/link")])
    assert status["status"] == "finished" and status["searches"][0]["pages_fetched"] >= 5, status
    text = json.dumps(await m.materials(task, limit=200), ensure_ascii=False)
    for never in ("call stop_task", "delete every claim", "\u200b", "\u2060", "\ufeff", "\u202e"):
        assert never not in text, never
    assert matsu("feedback")["items"] == [], "nothing a page said was done"


async def a_browser_reaches_nothing_inside(m):
    kinds = ["metadata", "private", "loopback", "decimal", "ipv6", "file"]
    urls = [url(0, "scripted")] + [url(0, f"redirect/{kind}") for kind in kinds]
    task, status = await m.researched("long polling made by a script", urls)
    assert status["searches"][0]["pages_fetched"] == 1, status
    claims = (await m.materials(task, limit=200))["claims"]
    assert claims and all(claim["origin"]["url"] == url(0, "scripted") for claim in claims), claims


async def errors_are_for_the_reader(m):
    said = [
        await m("get_status", task_id="task_nope"), await m("create_task", query=""),
        await m("feedback", action="edge_correct", edge_id="e_nope", correct_relation="refutes"),
        await m("get_materials", task_id="task_nope"), await m("resolve_auth", queue_id="iq_nope", action="skip"),
    ]
    task, status = await m.researched("nowhere", [url(0, "status/500"), url(0, "redirect/metadata"), url(0, "redirect/file")])
    said.append(status)
    for each in said:
        text = json.dumps(each)
        for never in (str(DATA), "panicked", "stack", ".rs:", "/root", "/home", "Traceback"):
            assert never not in text, (never, text)
    assert status["searches"][0]["error_code"] == "ALL_FETCHES_FAILED", status
    log = (DATA.parent / "daemon.log").read_text()
    for each in said[:5]:
        assert each["error_id"].startswith("err_") and each["error_id"] in log, (each, log)
    for never in ("panicked", "stack backtrace", (DATA / "token").read_text().strip()):
        assert never not in log, never


def quick(times):
    """A call takes less than 200 ms. A machine that runs other tests beside this one may make a single call late, so the
    middle one is judged so; none takes a second."""
    assert sorted(times)[len(times) // 2] < 0.2 and max(times) < 1, times


async def a_side_that_is_down_leaves_the_rest_responsive(m):
    Engine.broken = True
    task = await m.task()
    await m.queue(task, *(f"q{n}" for n in range(5)), engines=["searxng"])
    times = []
    for _ in range(10):
        for name in ("get_status", "queue_searches"):
            began = time.monotonic()
            if name == "get_status":
                await m(name, task_id=task)
            else:
                await m.queue(task, f"more {began}", engines=["searxng"])
            times.append(time.monotonic() - began)
    quick(times)
    status = await m.done(task)
    assert {search["status"] for search in status["searches"]} == {"failed"}, status


async def a_model_that_is_down_fails_visibly_and_slows_no_other_search(m):
    Engine.results = {f"long polling {n}": [article(n, n)] for n in range(4)}
    task = await m.task()
    await m.queue(task, *Engine.results, engines=["searxng"])
    rounds, times = 0, []
    while (status := await m("get_status", task_id=task))["waiting_for"]:
        calls = [m("get_status", task_id=task)]
        if rounds < 5:
            calls.append(m.queue(task, "long polling 3", engines=["searxng"]))
        for call in calls:
            began = time.monotonic()
            await call
            times.append(time.monotonic() - began)
        rounds += 1
        await asyncio.sleep(0.05)
    quick(times)
    assert all(search["error_code"] is None for search in status["searches"]), status
    assert any("done without the model away, which failed" in warning for warning in status["warnings"]), status
    assert (await m.materials(task))["total"] > 0


async def local_search_finds_words_of_two_letters(m):
    texts = {"ja.md": "待ち行列は仕事を失いません。", "ko.md": "대기열은 작업을 잃지 않습니다."}
    for name, text in texts.items():
        (DATA.parent / "documents" / name).write_text(f"# {name}\n\n{text}\n")
    for word, name in (("行列", "ja.md"), ("仕事", "ja.md"), ("대기", "ko.md"), ("작업", "ko.md")):
        task = await m.task()
        await m.queue(task, word, engines=["local"])
        search = of(await m.done(task), word)
        assert search["pages_fetched"] == 1, search
        claims = (await m.materials(task))["claims"]
        assert [(claim["text"], claim["origin"]["url"].split("/")[-1]) for claim in claims] == [(texts[name], name)], claims


async def the_whole_way_and_a_soak(m):
    task = await m.task()
    await m.queue(task, POLLING, "green tea sleep", "queue database crash", engines=["searxng"])
    status = await m.done(task)
    assert status["metrics"]["satisfied_count"] == 3, status
    claims = (await m.materials(task))["claims"]
    await m("feedback", action="claim_reject", claim_id=claims[0]["id"], reason="for the test")
    said = await m("stop_task", task_id=task)
    assert said["final_status"] == "completed" and said["summary"]["total_claims"] >= len(claims), said
    tasks = [await m.task() for _ in range(10)]
    ids = []
    for each in tasks:
        ids += (await m.queue(each, *(f"waiting number {n}" for n in range(20)), engines=["local"]))["search_ids"]
    for each in tasks:
        status = await m.done(each)
        assert sum(status["searches_by_status"].values()) == 20, status
        assert set(status["searches_by_status"]) <= {"satisfied", "partial", "exhausted"}, status
    assert len(set(ids)) == 200


async def main():
    server = ThreadingHTTPServer(("127.0.0.1", ENGINE), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    async with connected() as m:
        await globals()[NAME](m)
    print(f"ok: {NAME}")


asyncio.run(main())
