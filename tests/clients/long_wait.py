"""One call of seven minutes, kept alive by progress alone, over both transports and in both eras; and one cut at 5 s.

    long_wait.py DATA_DIR MATSU

The daemon must hold calls that are fed with progress for longer than that.
"""

import asyncio
import sys
import time

import python_sdk as sdk

SECONDS = 420
# The HTTP client gives a silent connection up after this; so only progress can bring the call through.
SILENT_MAX = 60


async def fed(transport, mode):
    arrived = [time.monotonic()]

    async def hear(progress, total, message):
        arrived.append(time.monotonic())

    async with sdk.connected(transport, mode) as client:
        task = sdk.submit(ms=SECONDS * 1000)
        asked = {"task_id": task, "timeout": 600, "since": 1, "wait_for": "all"}
        began = time.monotonic()
        reply = await client.call_tool("get_task_status", asked, progress_callback=hear, read_timeout_seconds=600)
    took = time.monotonic() - began
    assert reply.structured_content["status"] == "completed", reply
    assert took >= SECONDS - 5, took
    gaps = [after - before for before, after in zip(arrived, arrived[1:])]
    assert len(gaps) >= SECONDS // 11 and max(gaps) < 15, (len(gaps), max(gaps))
    print(f"ok: {transport} {mode}: {took:.0f} s in one call, {len(gaps)} words of progress", flush=True)


async def cut(transport, mode):
    async with sdk.connected(transport, mode) as client:
        task = sdk.submit(ms=600_000)
        before = sdk.waiters()
        asked = {"task_id": task, "timeout": 300, "since": 100}
        try:
            await client.call_tool("get_task_status", asked, read_timeout_seconds=5)
        except Exception as error:  # noqa: BLE001: each era and transport has its own
            assert "time" in str(error).lower(), repr(error)
        else:
            raise AssertionError("the client's own limit did not hold")
        status = (await client.call_tool("get_task_status", {"task_id": task})).structured_content["status"]
        assert status == "running", status
        began = time.monotonic()
        while sdk.waiters() > before:
            assert time.monotonic() - began < 5, f"{sdk.waiters()} waiters, {before} before"
            await asyncio.sleep(0.05)
    print(f"ok: {transport} {mode}: cut at 5 s, the job runs on, no call waits", flush=True)


async def main():
    ways = [(transport, mode) for mode in sdk.MODES for transport in ("stdio", "http")]
    for way in ways:
        await cut(*way)
    await asyncio.gather(*(fed(*way) for way in ways))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
