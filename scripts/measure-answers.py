#!/usr/bin/env python3
"""Asks the real binary questions with known answers and writes what it shows.

    scripts/measure-answers.py --binary target/release/matsu --data ../shared/data --out FOLDER \\
        [--languages en,de,zh,ja] [--wrap 0,72] [--weights FOLDER] [--sample N | --all] [--seed TEXT] [--at-once N]

The documents are rendered as Markdown files (unwrapped, and hard-wrapped at 72) into a folder that
the engine `local` searches. Each question is a research task of its own, asked over MCP: create_task,
queue_searches, get_status(wait), get_materials. What comes first in the materials is scored.
Several questions are asked at once: two for each core, or --at-once.

Asked is a sample of 200 questions per language (--sample): those whose id, hashed together with the seed
(--seed), comes first. The same seed always gives the same sample, and a larger sample holds the smaller
one. With --all, every question is asked; that takes hours.

With --weights, FOLDER holds 0.txt, 1.txt, ... from scripts/train-ranking.py --folds: each question is
answered with the weights that never saw its document. Without, with the weights in the binary.
Printed are hit@1, hit@5, MRR@10 and the share of whole sentences, and BM25 over sentences beside them.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

SAMPLE = 200
SEED = "matsu"


def module(path: Path):
    spec = importlib.util.spec_from_file_location("score_answers", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


class Client:
    """An MCP client over the binary's own standard input and output. Threads may ask at the same time."""

    def __init__(self, binary: str, home: str, folder: str, weights: str | None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MATSU_")}
        environment |= {"HOME": home, "MATSU_RESEARCH_FOLDERS": folder}
        if weights:
            environment["MATSU_RESEARCH_RANKING_WEIGHTS"] = weights
        self.process = subprocess.Popen(
            [binary, "mcp", "--no-daemon", "--data-dir", f"{home}/data"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, text=True, encoding="utf-8",
        )
        self.number = 0
        self.lock = threading.Lock()
        self.waiting: dict[int, Future] = {}
        threading.Thread(target=self.read, daemon=True).start()
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "measure", "version": "1"}}
        self.ask("initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def read(self) -> None:
        for line in self.process.stdout:
            answer = json.loads(line)
            if "method" not in answer and (asked := self.waiting.pop(answer.get("id"), None)):
                asked.set_result(answer)
        with self.lock:
            for asked in self.waiting.values():
                asked.set_exception(RuntimeError("the server ended"))
            self.waiting = {}
            self.number = -1

    def ask(self, method: str, parameters: dict) -> dict:
        with self.lock:
            if self.number < 0:
                raise RuntimeError("the server ended")
            self.number += 1
            asked = self.waiting[self.number] = Future()
            self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters})
        answer = asked.result()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def call(self, tool: str, arguments: dict) -> dict:
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("isError"):
            raise RuntimeError(answer)
        return answer["structuredContent"]

    def claims(self, question: str) -> list[str]:
        task = self.call("create_task", {"query": question, "config": {"engines": ["local"]}})["task_id"]
        self.call("queue_searches", {"task_id": task, "queries": [question]})
        for _ in range(100):
            if self.call("get_status", {"task_id": task, "wait": 50, "wait_for": "all"})["returned_because"] not in (
                "timeout",
                "changed",
            ):
                break
        found = self.call("get_materials", {"task_id": task, "options": {"limit": 10}})
        return [claim["text"] for claim in found["claims"]]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def fold_of(document: str, folds: int) -> int:
    """As in train-ranking.py. The same article in another language is in the same fold."""
    return int(document.split("-")[1]) // 2 % folds


def ask_all(arguments, folder: str, questions: list[dict]) -> dict[str, list[str]]:
    folds = sorted(Path(arguments.weights).glob("[0-9]*.txt")) if arguments.weights else [None]
    found: dict[str, list[str]] = {}
    for number, weights in enumerate(folds):
        mine = [q for q in questions if weights is None or fold_of(q["doc"], len(folds)) == number]
        with tempfile.TemporaryDirectory() as home:
            client = Client(arguments.binary, home, folder, str(weights) if weights else None)
            with ThreadPoolExecutor(arguments.at_once) as threads:
                claims = threads.map(client.claims, [question["question"] for question in mine])
                found.update(zip([question["id"] for question in mine], claims))
            client.close()
    return found


def sample(questions: list[dict], count: int, seed: str) -> list[dict]:
    """The same questions for the same seed, in the order of the data."""
    rank = {q["id"]: hashlib.sha256(f"{seed} {q['id']}".encode()).digest() for q in questions}
    chosen = set(sorted(rank, key=rank.__getitem__)[:count])
    return [q for q in questions if q["id"] in chosen]


def figures(scorer, language: str, found: dict, folder: str, ids: set[str]) -> dict[str, float]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        scorer.report(language, found, folder, ids)
    numbers = re.findall(r"(hit@1|hit@5|MRR@10|whole) ([0-9.]+)", printed.getvalue())
    return {name: float(value) for name, value in numbers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--languages", default="en,de,zh,ja")
    parser.add_argument("--wrap", default="0,72")
    parser.add_argument("--weights")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--sample", type=int, default=SAMPLE, help=f"questions per language ({SAMPLE})")
    amount.add_argument("--all", action="store_true", help="every question")
    parser.add_argument("--seed", default=SEED, help="chooses the sample")
    parser.add_argument("--at-once", type=int, default=2 * (os.cpu_count() or 1), help="questions asked at once")
    arguments = parser.parse_args()
    arguments.binary = str(Path(arguments.binary).resolve())
    scorer = module(arguments.data / "score_answers.py")
    answers = str(arguments.data / "answers")
    arguments.out.mkdir(parents=True, exist_ok=True)
    report = []
    for language in arguments.languages.split(","):
        _, questions = scorer.load(language, answers)
        fixed = arguments.data / "answers" / f"{language}-600.txt"
        if fixed.exists():
            chosen = set(fixed.read_text().split())
            questions = [q for q in questions if q["id"] in chosen]
        total = len(questions)
        if not arguments.all:
            questions = sample(questions, arguments.sample, arguments.seed)
        ids = {q["id"] for q in questions}
        baseline = figures(scorer, language, scorer.baseline(language, answers), answers, ids)
        for wrap in map(int, arguments.wrap.split(",")):
            folder = arguments.out / f"{language}-{wrap}"
            render = [str(arguments.data / "score_answers.py"), "--data", answers, "render", language, str(folder)]
            subprocess.run(["python3", *render, "--wrap", str(wrap)], check=True)
            found = ask_all(arguments, str(folder.resolve()), questions)
            seen = figures(scorer, language, found, answers, ids)
            row = {"language": language, "wrap": wrap, "questions": len(ids), "of": total}
            row |= {"matsu": seen, "bm25": baseline}
            report.append(row)
            print(json.dumps(row), flush=True)
            with open(arguments.out / f"{language}-{wrap}.jsonl", "w", encoding="utf-8") as out:
                out.writelines(json.dumps({"id": i, "claims": c}, ensure_ascii=False) + "\n" for i, c in found.items())
    (arguments.out / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
