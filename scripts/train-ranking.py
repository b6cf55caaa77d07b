#!/usr/bin/env python3
"""Makes the weights by which Matsu ranks sentences.

    python -m venv .venv && .venv/bin/pip install numpy==2.3.*
    cargo build --release --manifest-path bench/peers/reader/Cargo.toml
    .venv/bin/python scripts/train-ranking.py --data ../shared/data \\
        --reader bench/peers/reader/target/release/bench-peer-reader \\
        --folds FOLDER --out crates/matsu-core/src/research/ranking/weights.txt

The data are encyclopaedia articles with questions whose answers are known (English, German, Chinese,
Japanese). The reader shows for each question the sentences of the 15 closest documents that have most
words in common with it, each with the ranker's own features. A sentence is right if it answers by the
rule of score_answers.py. The weights are those of a linear model under a softmax over the sentences of
a question (the logarithm of the share that goes to right sentences is made large, with a quadratic
penalty): one set for scripts with spaces, one for those without.

There are six folds by document; the same article in another language is in the same fold. --folds
writes 0.txt to 5.txt: the weights that never saw the documents of that fold, for
scripts/measure-answers.py. --out writes the weights of all documents, which ship. `scale` and `offset`
make a probability of a score; they are fitted to the scores that the folds gave to unseen documents.
--rows FOLDER keeps the reader's rows, and reads them again if they are there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

FOLDS = 6
SCRIPTS = (("en", "de"), ("zh", "ja"))
PENALTY = 10.0
STEPS = 150
SENTENCES = 40
# Japanese has six times as many questions as the others: every sixth, and the fixed 600.
JAPANESE_EVERY = 6


def module(path: Path):
    spec = importlib.util.spec_from_file_location("score_answers", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def fold_of(document: str) -> int:
    """As in measure-answers.py."""
    return int(document.split("-")[1]) // 2 % FOLDS


def names() -> list[str]:
    source = Path(__file__).parent.parent / "crates/matsu-core/src/research/ranking/features.rs"
    block = source.read_text().split("pub const NAMES", 1)[1].split("= [", 1)[1].split("];", 1)[0]
    return [part.strip().strip('"') for part in block.split(",") if part.strip()]


def load(scorer, arguments, language: str, rows: Path) -> list[tuple]:
    """Of each question: its id, its document, the features, and which sentences are right."""
    documents, questions = scorer.load(language, str(arguments.data / "answers"))
    fixed = arguments.data / "answers" / f"{language}-600.txt"
    if fixed.exists():
        chosen = set(fixed.read_text().split())
        questions = [q for n, q in enumerate(questions) if q["id"] in chosen or n % JAPANESE_EVERY == 0]
    out = rows / f"{language}.jsonl"
    if not out.exists():
        folder, asked = rows / language, rows / f"{language}-questions.jsonl"
        render = ["--data", str(arguments.data / "answers"), "render", language, str(folder)]
        subprocess.run(["python3", str(arguments.data / "score_answers.py"), *render], check=True)
        asked.write_text("\n".join(json.dumps(q) for q in questions))
        subprocess.run([str(arguments.reader), "answer-rows", str(folder), str(asked), str(out)], check=True)
    by_id = {q["id"]: q for q in questions}
    found = []
    for line in out.read_text().splitlines():
        row = json.loads(line)
        question = by_id[row["id"]]
        gold = scorer.gold(question, documents[question["doc"]])
        right = np.array([scorer.answers(text, gold) for text, _ in row["candidates"]], bool)
        features = np.array([values for _, values in row["candidates"]]).reshape(len(right), len(names()))
        found.append((row["id"], question["doc"], features, right))
    return found


def fit(questions: list[tuple]) -> np.ndarray:
    questions = [q for q in questions if q[3].any()]
    width = questions[0][2].shape[1]
    x = np.zeros((len(questions), SENTENCES, width), np.float32)
    there, right = np.zeros(x.shape[:2], bool), np.zeros(x.shape[:2], bool)
    for n, (_, _, features, is_right) in enumerate(questions):
        order = np.concatenate([np.where(is_right)[0], np.where(~is_right)[0]])[:SENTENCES]
        x[n, : len(order)], there[n, : len(order)], right[n, : len(order)] = features[order], True, is_right[order]
    spread = x[there].std(0) + 1e-6
    x /= spread
    weights, mean, square = np.zeros(width, np.float32), np.zeros(width), np.zeros(width)
    for step in range(1, STEPS + 1):
        score = x @ weights
        score[~there] = -1e9
        share = np.exp(score - score.max(1, keepdims=True))
        wanted = np.where(right, share, 0)
        share /= share.sum(1, keepdims=True)
        wanted /= wanted.sum(1, keepdims=True).clip(1e-12)
        slope = np.tensordot(share - wanted, x, ([0, 1], [0, 1])) / len(x) + PENALTY * weights / len(x)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope * slope
        turn = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weights -= (0.08 * turn).astype(np.float32)
    return weights / spread


def probability(questions: list[tuple], folds: list[np.ndarray]) -> tuple[float, float]:
    """Scale and offset of the logistic curve through the scores of sentences that the weights have not seen."""
    score = np.concatenate([q[2] @ folds[fold_of(q[1])] for q in questions])
    right = np.concatenate([q[3] for q in questions]).astype(float)
    middle, spread = score.mean(), score.std()
    z, curve = (score - middle) / spread, np.array([1.0, -3.0])
    for _ in range(60):
        p = 1 / (1 + np.exp(-(curve[0] * z + curve[1])))
        slope, bend = np.array([((p - right) * z).sum(), (p - right).sum()]), p * (1 - p) + 1e-9
        matrix = np.array([[(bend * z * z).sum(), (bend * z).sum()], [(bend * z).sum(), bend.sum()]])
        curve = curve - np.linalg.solve(matrix, slope)
    return curve[0] / spread, curve[1] - curve[0] * middle / spread


def hits(questions: list[tuple], folds: list[np.ndarray]) -> tuple[float, float]:
    first = five = 0
    for _, document, features, right in questions:
        if len(right):
            best = right[np.argsort(-(features @ folds[fold_of(document)]), kind="stable")[:5]]
            first, five = first + best[0], five + best.any()
    return first / len(questions), five / len(questions)


def write(path: Path, weights: list[np.ndarray], curves: list[tuple[float, float]]) -> None:
    lines = ["# Made by scripts/train-ranking.py: feature, weight in scripts with spaces, weight in scripts without."]
    lines += [f"{name} {weights[0][n]:.4f} {weights[1][n]:.4f}" for n, name in enumerate(names())]
    lines += [f"{what} {curves[0][n]:.4f} {curves[1][n]:.4f}" for n, what in enumerate(("scale", "offset"))]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--reader", type=Path, required=True)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--folds", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    scorer = module(arguments.data / "score_answers.py")
    with tempfile.TemporaryDirectory() as scratch:
        rows = arguments.rows or Path(scratch)
        rows.mkdir(parents=True, exist_ok=True)
        found = {lang: load(scorer, arguments, lang, rows) for script in SCRIPTS for lang in script}
    folds, curves, whole = [], [], []
    for script in SCRIPTS:
        questions = [q for language in script for q in found[language]]
        folds.append([fit([q for q in questions if fold_of(q[1]) != n]) for n in range(FOLDS)])
        curves.append(probability(questions, folds[-1]))
        whole.append(fit(questions))
        for language in script:
            first, five = hits(found[language], folds[-1])
            print(f"{language}: {len(found[language])} questions, hit@1 {first:.3f}, hit@5 {five:.3f} by folds")
    if arguments.folds:
        arguments.folds.mkdir(parents=True, exist_ok=True)
        for n in range(FOLDS):
            write(arguments.folds / f"{n}.txt", [folds[0][n], folds[1][n]], curves)
    if arguments.out:
        write(arguments.out, whole, curves)


if __name__ == "__main__":
    main()
