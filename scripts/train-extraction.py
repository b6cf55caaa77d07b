#!/usr/bin/env python3
"""Makes the trees by which Matsu tells main text from the rest of a page.

    python -m venv .venv && .venv/bin/pip install numpy==2.3.* lightgbm==4.6.*
    cargo build --release --manifest-path bench/peers/reader/Cargo.toml
    .venv/bin/python scripts/train-extraction.py --data ../shared/data \\
        --reader bench/peers/reader/target/release/bench-peer-reader \\
        --out crates/matsu-adapters/src/extract/block_model.txt

The data are the two page sets that bench/README.md names: 181 articles and 150 pages of seven
kinds, each with its true main text. A block of a page is main text if most of its words stand
in the true text in the same order. Every number a block is judged by comes from the reader (that
is, from the very code that judges pages later), so the two cannot drift apart.

There are two looks. The second sees what the first made of a block's surroundings; it is trained
on what models that had not seen the page made of them. Printed are the scores of five-fold
cross-validation by page (what to expect of pages nobody trained on, without the other extractor
that is asked when in doubt) and the doubt below which five sixths of unseen pages lie.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import lightgbm as lgb
import numpy as np

SETS = (
    ("articles", "extraction/articles/html", "extraction/articles/ground-truth.json"),
    ("wcxb", "extraction/wcxb-dev-150/html", "extraction/wcxb-dev-150/truth"),
)
WORD = re.compile(r"\w+")
FOLDS = 5
ROUNDS = (80, 110)
KEEP = 0.5
SETTINGS = {
    "objective": "binary",
    "learning_rate": 0.08,
    "num_leaves": 12,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.35,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 8,
    "max_bin": 63,
    "verbose": -1,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 2,
}


def load_scorer(data: Path):
    spec = importlib.util.spec_from_file_location("score_extraction", data / "score_extraction.py")
    scorer = importlib.util.module_from_spec(spec)
    sys.modules["score_extraction"] = scorer
    spec.loader.exec_module(scorer)
    return scorer


def covered(text: str, runs: list[set]) -> tuple[float, int]:
    """The share of a block's words that stand in the truth, and how many words it has."""
    words = [w.lower() for w in WORD.findall(text)]
    if not words:
        return 0.0, 0
    size = min(4, len(words))
    hit = [False] * len(words)
    for at in range(len(words) - size + 1):
        if tuple(words[at : at + size]) in runs[size - 1]:
            hit[at : at + size] = [True] * size
    share = sum(hit) / len(words)
    # A few words are easily found somewhere: only all of them count.
    if len(words) < 8 and share < 0.95:
        share = min(share, 0.4)
    return share, len(words)


class Pages:
    def __init__(self, data: Path, reader: Path, scorer):
        self.data, self.reader, self.scorer = data, reader, scorer
        self.pages, rows, labels, weights, groups = [], [], [], [], []
        self.starts = [0]
        for name, html, truth in SETS:
            truths, _ = scorer.load_truth(data / truth)
            for key, page in sorted(self.ask("rows", html).items()):
                if key not in truths:
                    continue
                words = [w.lower() for w in WORD.findall(truths[key].text)]
                runs = [{tuple(words[i : i + n]) for i in range(len(words) - n + 1)} for n in range(1, 5)]
                found = [covered(text, runs) for text in page["texts"]]
                wanted = sum(count for share, count in found if share > 0.5) or 50
                rows += page["rows"]
                labels += [share > 0.5 for share, _ in found]
                # Long blocks count more, long pages little more than short ones.
                weights += [count**0.7 / wanted**0.5 for _, count in found]
                groups += [len(self.pages)] * len(found)
                self.pages.append((name, key, page["texts"], truths[key]))
                self.starts.append(len(rows))
        self.first = np.array(rows, dtype=np.float32)
        self.labels = np.array(labels, dtype=np.int8)
        self.weights = np.array(weights)
        self.groups = np.array(groups)
        self.folds = np.random.RandomState(0).permutation(len(self.pages)) % FOLDS

    def ask(self, mode: str, html: str, *given: str) -> dict:
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            subprocess.run([self.reader, mode, self.data / html, *given, out.name], check=True)
            return json.load(open(out.name, encoding="utf-8"))

    def second(self, probabilities: np.ndarray) -> np.ndarray:
        rows = []
        for name, html, _ in SETS:
            of_set = {
                page[1]: probabilities[self.starts[n] : self.starts[n + 1]].tolist()
                for n, page in enumerate(self.pages)
                if page[0] == name
            }
            with tempfile.NamedTemporaryFile("w", suffix=".json") as given:
                json.dump(of_set, given)
                given.flush()
                answer = self.ask("context", html, given.name)
            for key in sorted(of_set):
                rows += answer[key]
        return np.hstack([self.first, np.array(rows, dtype=np.float32)])

    def fit(self, rows: np.ndarray, mask: np.ndarray, rounds: int):
        train = lgb.Dataset(rows[mask], self.labels[mask], weight=self.weights[mask])
        return lgb.train(SETTINGS, train, rounds)

    def held_out(self, rows: np.ndarray, rounds: int) -> np.ndarray:
        found = np.zeros(len(rows))
        for fold in range(FOLDS):
            mask = self.folds[self.groups] != fold
            found[~mask] = self.fit(rows, mask, rounds).predict(rows[~mask])
        return found

    def scores(self, probabilities: np.ndarray, keep: float) -> str:
        parts = []
        for name, metric, summary in (
            ("articles", self.scorer.shingle_page, self.scorer.shingle_summary),
            ("wcxb", self.scorer.wordset_page, self.scorer.word_summary),
        ):
            found = []
            for n, (of_set, _, texts, truth) in enumerate(self.pages):
                if of_set == name:
                    chosen = probabilities[self.starts[n] : self.starts[n + 1]] > keep
                    found.append(metric(once(texts, chosen), truth))
            parts.append(f"{name} {summary(found)['f1']:.4f}")
        return "  ".join(parts)

    def doubts(self, probabilities: np.ndarray) -> np.ndarray:
        found = []
        for n, (_, _, texts, _) in enumerate(self.pages):
            p = probabilities[self.starts[n] : self.starts[n + 1]]
            chars = np.array([len(text) for text in texts])
            found.append((chars * np.minimum(p, 1 - p)).sum() / (1 + chars[p > 0.15].sum()))
        return np.array(found)


def once(texts: list[str], chosen: np.ndarray) -> str:
    seen, kept = set(), []
    for text, is_chosen in zip(texts, chosen):
        if is_chosen and (len(text) < 60 or text not in seen):
            kept.append(text)
            seen.add(text)
    return "\n".join(kept)


def lines(model) -> str:
    """The trees in the form that trees.rs reads."""
    out = []
    for tree in model.dump_model()["tree_info"]:
        splits, leaves = [], []

        def place(node: dict) -> int:
            if "leaf_value" in node and "split_feature" not in node:
                leaves.append(node["leaf_value"])
                return -len(leaves)
            at = len(splits)
            splits.append(None)
            left, right = place(node["left_child"]), place(node["right_child"])
            splits[at] = f"{node['split_feature']} {node['threshold']:.6g} {left} {right}"
            return at

        place(tree["tree_structure"])
        out.append(";".join(splits) + "|" + " ".join(f"{leaf:.5g}" for leaf in leaves))
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--reader", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()

    pages = Pages(args.data, args.reader.resolve(), load_scorer(args.data))
    print(f"{len(pages.pages)} pages, {len(pages.labels)} blocks, {pages.first.shape[1]} columns", flush=True)
    first_held_out = pages.held_out(pages.first, ROUNDS[0])
    second = pages.second(first_held_out)
    held_out = pages.held_out(second, ROUNDS[1])
    for keep in (0.4, KEEP, 0.6):
        print(f"held out, keep {keep}: {pages.scores(held_out, keep)}", flush=True)
    print(f"doubt at five sixths of unseen pages: {np.quantile(pages.doubts(held_out), 5 / 6):.3f}")

    everything = np.ones(len(pages.labels), bool)
    models = [pages.fit(pages.first, everything, ROUNDS[0]), pages.fit(second, everything, ROUNDS[1])]
    args.out.write_text("---\n".join(lines(model) for model in models), encoding="utf-8")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
