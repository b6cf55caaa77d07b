#!/usr/bin/env python3
"""Makes the trees by which Matsu tells main text from the rest of a page.

    python -m venv .venv && .venv/bin/pip install numpy==2.3.* lightgbm==4.6.*
    cargo build --release --manifest-path bench/peers/reader/Cargo.toml
    .venv/bin/python scripts/train-extraction.py --data ../shared/data \\
        --reader bench/peers/reader/target/release/bench-peer-reader \\
        --out crates/matsu-reader/src/block_model.txt

The data are two page sets: 181 articles and 1,358 pages of seven
kinds, each with its true main text. A block of a page is main text if most of its words stand
in the true text in the same order. Every number a block is judged by comes from the reader (that
is, from the very code that judges pages later), so the two cannot drift apart.

Printed is what to expect of pages that were not trained on: five-fold cross-validation by site (all pages
of a site are in one fold, over both sets), --foldings times with other folds, and the pages a
second that come of it. Beside it stands rs-trafilatura on the same pages, with the paired difference
by kind of page and its 95 % interval (bootstrap over pages). --held-out FOLDER keeps those texts
(articles-N.json, wcxb-N.json) and the figures (figures.json); without --out nothing is trained for
good.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import lightgbm as lgb
import numpy as np

SETS = (
    ("articles", "extraction/articles/html", "extraction/articles/ground-truth.json"),
    ("wcxb", "extraction/wcxb-dev/html", "extraction/wcxb-dev/truth"),
)
WORD = re.compile(r"\w+")
# There are eight times as many pages of the other set, and their truth is another one in small things.
ARTICLE_WEIGHT = 8
FOLDS = 5
FOLDINGS = 1
RESAMPLED = 2000
ROUNDS = 150
SETTINGS = {
    "objective": "binary",
    "learning_rate": 0.06,
    "num_leaves": 24,
    "min_data_in_leaf": 100,
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


class Truth:
    """The true text of a page, used up as its blocks are read: what a page repeats is main text once."""

    def __init__(self, text: str):
        words = [w.lower() for w in WORD.findall(text)]
        self.runs = [{tuple(words[i : i + n]) for i in range(len(words) - n + 1)} for n in range(1, 5)]
        self.left = Counter(zip(*(words[shift:] for shift in range(4))))

    def has(self, block: str) -> bool:
        if covered(block, self.runs)[0] <= 0.5:
            return False
        words = [w.lower() for w in WORD.findall(block)]
        runs = [run for run in zip(*(words[shift:] for shift in range(4))) if run in self.left]
        if runs and sum(self.left[run] > 0 for run in runs) <= len(runs) / 2:
            return False
        self.left.subtract(runs)
        return True


class Pages:
    def __init__(self, data: Path, reader: Path, scorer):
        self.data, self.reader, self.scorer = data, reader, scorer
        self.pages, rows, labels, weights, groups, self.sites = [], [], [], [], [], []
        self.starts = [0]
        for name, html, truth in SETS:
            truths, _ = scorer.load_truth(data / truth)
            addresses = addresses_of(data / truth)
            for key, page in sorted(self.ask("rows", html).items()):
                if key not in truths:
                    continue
                text = Truth(truths[key].text)
                found = [text.has(block) for block in page["texts"]]
                words = [len(WORD.findall(block)) for block in page["texts"]]
                wanted = sum(count for is_main, count in zip(found, words) if is_main) or 50
                if found:
                    rows.append(np.array(page["rows"], dtype=np.float32))
                labels += found
                # Long blocks count more, long pages little more than short ones.
                weight = ARTICLE_WEIGHT if name == "articles" else 1
                weights += [weight * count**1.2 / wanted**0.5 for count in words]
                groups += [len(self.pages)] * len(found)
                self.pages.append((name, key, truths[key]))
                self.sites.append(site(addresses.get(key, key)))
                self.starts.append(self.starts[-1] + len(found))
        self.rows = np.vstack(rows)
        self.labels = np.array(labels, dtype=np.int8)
        self.weights = np.array(weights)
        self.groups = np.array(groups)

    def ask(self, mode: str, html: str, *given: str, truth: str | None = None, before: tuple = ()) -> dict:
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            last = [self.data / truth] if truth else []
            command = [self.reader, mode, *before, self.data / html, *given, out.name, *last]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return json.load(open(out.name, encoding="utf-8"))

    def ask_about(self, mode: str, probabilities: np.ndarray) -> list:
        """What the reader makes of every page with these probabilities of its blocks."""
        answers = []
        for name, html, _ in SETS:
            of_set = {
                page[1]: probabilities[self.starts[n] : self.starts[n + 1]].tolist()
                for n, page in enumerate(self.pages)
                if page[0] == name
            }
            with tempfile.NamedTemporaryFile("w", suffix=".json") as given:
                json.dump(of_set, given)
                given.flush()
                answer = self.ask(mode, html, given.name)
            answers += [answer[key] for key in sorted(of_set)]
        return answers

    def fit(self, mask: np.ndarray):
        train = lgb.Dataset(self.rows[mask], self.labels[mask], weight=self.weights[mask])
        return lgb.train(SETTINGS, train, ROUNDS)

    def held_out(self, folding: int) -> np.ndarray:
        sites = sorted(set(self.sites))
        order = dict(zip(sites, np.random.RandomState(folding).permutation(len(sites)) % FOLDS))
        folds = np.array([order[one] for one in self.sites])
        found = np.zeros(len(self.rows))
        for fold in range(FOLDS):
            mask = folds[self.groups] != fold
            found[~mask] = self.fit(mask).predict(self.rows[~mask])
        return found

    def scores(self, texts: list[str]) -> dict:
        found = {}
        for name, metric, summary in (
            ("articles", self.scorer.shingle_page, self.scorer.shingle_summary),
            ("wcxb", self.scorer.wordset_page, self.scorer.word_summary),
        ):
            of_set = [metric(text, page[2]) for text, page in zip(texts, self.pages) if page[0] == name]
            found[name] = summary(of_set)["f1"]
        return found


def addresses_of(truth: Path) -> dict[str, str]:
    if truth.is_dir():
        return {path.stem: json.loads(path.read_text(encoding="utf-8"))["url"] for path in truth.glob("*.json")}
    return {key: record.get("url", key) for key, record in json.loads(truth.read_text(encoding="utf-8")).items()}


def site(address: str) -> str:
    """The last two labels of the host: enough to keep pages of one publisher together."""
    host = re.sub(r"^[a-z]+://", "", address.lower()).split("/", 1)[0].split(":", 1)[0]
    return ".".join(host.split(".")[-2:])


def peer(pages: Pages) -> list[str]:
    """What rs-trafilatura makes of every page."""
    found = []
    for name, html, truth in SETS:
        texts = pages.ask("read", html, truth=truth if name == "wcxb" else None, before=("rs-trafilatura",))
        found += [texts.get(page[1], "") for page in pages.pages if page[0] == name]
    return found


def compare(pages: Pages, texts: list[str], other: list[str]) -> dict:
    """By kind of page: both means, and the paired difference with its 95 % interval."""
    by_kind: dict[str, list[tuple[float, float]]] = {}
    for page, mine, theirs in zip(pages.pages, texts, other):
        if page[0] == "wcxb":
            pair = tuple(pages.scorer.wordset_page(text, page[2])["f1"] for text in (mine, theirs))
            for kind in ("all", page[2].kind or "?"):
                by_kind.setdefault(kind, []).append(pair)
    chance, found = np.random.RandomState(3), {}
    for kind, pairs in sorted(by_kind.items()):
        pairs = np.array(pairs)
        gap = pairs[:, 0] - pairs[:, 1]
        drawn = gap[chance.randint(0, len(gap), (RESAMPLED, len(gap)))].mean(axis=1)
        low, high = np.quantile(drawn, (0.025, 0.975))
        found[kind] = {"pages": len(gap), "matsu": pairs[:, 0].mean(), "rs-trafilatura": pairs[:, 1].mean(), "low": low, "high": high}
        print(f"  {kind:<15}{len(gap):>5}  matsu {pairs[:, 0].mean():.4f}  rs-trafilatura {pairs[:, 1].mean():.4f}"
              f"  difference {gap.mean():+.4f} ({low:+.4f} … {high:+.4f})", flush=True)
    return found


def cross_validate(pages: Pages, keep: Path | None, foldings: int) -> None:
    figures = []
    other = peer(pages)
    figures_text = "  ".join(f"{key} {value:.4f}" for key, value in pages.scores(other).items())
    print(f"rs-trafilatura: {figures_text}", flush=True)
    for folding in range(foldings):
        read = pages.ask_about("texts", pages.held_out(folding))
        texts = [page["text"] for page in read]
        figures.append({**pages.scores(texts), "pages_per_s": len(read) / sum(page["seconds"] for page in read)})
        figures_text = "  ".join(f"{key} {value:.4f}" for key, value in figures[-1].items())
        print(f"held out {folding}: {figures_text}", flush=True)
        kinds = compare(pages, texts, other)
        for name, *_ in SETS if keep else ():
            of_set = {page[1]: text for page, text in zip(pages.pages, texts) if page[0] == name}
            (keep / f"{name}-{folding}.json").write_text(json.dumps(of_set), encoding="utf-8")
    mean = {key: float(np.mean([figure[key] for figure in figures])) for key in figures[0]}
    # What else the machine does can only take time away.
    mean["pages_per_s"] = max(figure["pages_per_s"] for figure in figures)
    print("held out, mean: " + "  ".join(f"{key} {value:.4f}" for key, value in mean.items()), flush=True)
    if keep:
        mean["kinds"] = {kind: {key: float(value) for key, value in row.items()} for kind, row in kinds.items()}
        mean["rs-trafilatura"] = pages.scores(other)
        (keep / "figures.json").write_text(json.dumps(mean), encoding="utf-8")


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
    parser.add_argument("--out", type=Path)
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--foldings", type=int, default=FOLDINGS)
    args = parser.parse_args()

    pages = Pages(args.data, args.reader.resolve(), load_scorer(args.data))
    print(f"{len(pages.pages)} pages, {len(pages.labels)} blocks, {pages.rows.shape[1]} columns", flush=True)
    cross_validate(pages, args.held_out, args.foldings)
    if args.out:
        args.out.write_text(lines(pages.fit(np.ones(len(pages.labels), bool))), encoding="utf-8")
        print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
