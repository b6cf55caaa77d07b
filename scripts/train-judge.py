#!/usr/bin/env python3
"""Makes the weights of the embedded judge.

    python -m venv .venv && .venv/bin/pip install numpy==2.3.* scipy==1.16.*
    cargo build --release --manifest-path bench/peers/reader/Cargo.toml
    .venv/bin/python scripts/train-judge.py --data ../shared/data \\
        --reader bench/peers/reader/target/release/bench-peer-reader \\
        --out crates/matsu-adapters/src/judge/weights.txt

The data are SciFact's pairs of claim and evidence, which support or refute. They have no neutral
pairs, so those are made: every claim is matched with the evidence of another group, half of them
with the evidence that shares most words with it (the hard ones), half with any. The features come
from the judge's own code, through the reader.

SciFact's evidence is long and roundabout; other sources often say the very same, or its plain
denial. So every claim is also matched with itself, and with itself turned around by one small word
where English allows it ("reduces" to "does not reduce"). These made pairs only ever train: all
figures are of SciFact's own pairs and the neutral ones.

Multinomial logistic regression with a quadratic penalty, fitted by L-BFGS. What is printed are the
figures of ten-fold cross-validation by group: no claim is judged by weights that have seen it. The
weights written are fitted to all pairs, with the temperature that cross-validation found best.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.optimize import minimize, minimize_scalar

LABELS = ("supports", "refutes", "neutral")
FOLDS = 10
PENALTY = 1.0
# A made pair is plainer than life: it counts for this much of a real one.
PLAIN_WEIGHT = 0.4
WORD = re.compile(r"\w{4,}")


def pairs(data: Path) -> list[dict]:
    with gzip.open(data / "stance/scifact-pairs-train.jsonl.gz", "rt", encoding="utf-8") as lines:
        known = [json.loads(line) for line in lines]
    chance = random.Random(1)
    words = [set(WORD.findall(row["evidence"].lower())) for row in known]
    made = []
    for row in known:
        others = [n for n, other in enumerate(known) if other["group"] != row["group"]]
        wanted = set(WORD.findall(row["claim"].lower()))
        hard = max(others, key=lambda n: len(wanted & words[n]))
        chosen = hard if chance.random() < 0.5 else chance.choice(others)
        made.append({**row, "id": row["id"] + "-neutral", "evidence": known[chosen]["evidence"], "label": "neutral"})
    return known + made


BE = re.compile(r"\b(is|are|was|were|can|could|may|might|will|should|has|have)\b")
DO = re.compile(
    r"\b(reduc|increas|decreas|induc|caus|improv|promot|inhibit|lead|play|affect|requir|activat|contribut|"
    r"regulat|enhanc|impair|protect|prevent|mediat|modulat|bind|predict|correlat|suppress|trigger|caus|result|"
    r"produc|provid|block|stimulat|express|contain|involv|enabl|limit|rais|lower|cut)(e?)s\b"
)


def denied(claim: str) -> str | None:
    """The claim with a "not" in it; none where that takes more than a rule."""
    for pattern, turned in ((DO, r"does not \1\2"), (BE, r"\1 not")):
        text, changed = pattern.subn(turned, claim, count=1)
        if changed:
            return text
    return None


def plain(known: list[dict]) -> list[dict]:
    """Claims beside themselves and beside their denial, for training alone."""
    made = []
    for row in {row["claim"]: row for row in known}.values():
        base = {"group": row["group"], "claim": row["claim"]}
        made.append({**base, "id": row["id"] + "-same", "evidence": row["claim"], "label": "supports"})
        turned = denied(row["claim"])
        if turned and not re.search(r"\b(not|no)\b", row["claim"]):
            made.append({**base, "id": row["id"] + "-denied", "evidence": turned, "label": "refutes"})
            made.append({**base, "id": row["id"] + "-both", "claim": turned, "evidence": turned, "label": "supports"})
    return made


def features(reader: Path, rows: list[dict]) -> np.ndarray:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as given, tempfile.NamedTemporaryFile(suffix=".json") as out:
        json.dump([[row["claim"], row["evidence"]] for row in rows], given)
        given.flush()
        subprocess.run([reader, "stance-rows", given.name, out.name], check=True)
        return np.array(json.load(open(out.name)))


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def fit(x: np.ndarray, y: np.ndarray, worth: np.ndarray) -> np.ndarray:
    """Weights, a row a feature and the bias last; a column a label."""
    x = np.hstack([x, np.ones((len(x), 1))])
    truth = np.eye(len(LABELS))[y]
    # Refuting pairs are few; half of the way to equal shares, so that they are found at all.
    share = truth.mean(axis=0)
    weight = (1 / share[y]) ** 0.5
    weight = weight / weight.mean() * worth

    def loss(flat):
        w = flat.reshape(x.shape[1], len(LABELS))
        p = softmax(x @ w)
        penalty = PENALTY * (w[:-1] ** 2).sum() / 2
        value = -(weight * np.log(p[np.arange(len(y)), y] + 1e-12)).sum() + penalty
        slope = x.T @ ((p - truth) * weight[:, None])
        slope[:-1] += PENALTY * w[:-1]
        return value, slope.ravel()

    found = minimize(loss, np.zeros(x.shape[1] * len(LABELS)), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    return found.x.reshape(x.shape[1], len(LABELS))


def scores(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.hstack([x, np.ones((len(x), 1))]) @ w


def macro_f1(y: np.ndarray, said: np.ndarray, labels) -> float:
    found = []
    for label in labels:
        hit = ((y == label) & (said == label)).sum()
        found.append(2 * hit / max(1, (y == label).sum() + (said == label).sum()))
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "reader", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--predictions", type=Path, help="write the held-out predictions here, for score_stance.py")
    args = parser.parse_args()

    rows = pairs(args.data)
    real = len(rows)
    rows += plain(rows[: real // 2])
    x = features(args.reader.resolve(), rows)
    y = np.array([LABELS.index(row["label"]) for row in rows])
    mean, spread = x[:real].mean(axis=0), x[:real].std(axis=0)
    spread[spread == 0] = 1
    x = (x - mean) / spread
    worth = np.where(np.arange(len(y)) < real, 1.0, PLAIN_WEIGHT)
    groups = sorted({row["group"] for row in rows})
    random.Random(2).shuffle(groups)
    fold = np.array([groups.index(row["group"]) % FOLDS for row in rows])

    held_out = np.zeros((len(y), len(LABELS)))
    for n in range(FOLDS):
        held_out[fold == n] = scores(x[fold == n], fit(x[fold != n], y[fold != n], worth[fold != n]))

    is_real = np.arange(len(y)) < real
    rows, held_out, truth = rows[:real], held_out[is_real], y[is_real]

    def surprise(scale):
        return -np.log(softmax(held_out * scale)[np.arange(real), truth] + 1e-12).mean()

    scale = minimize_scalar(surprise, bounds=(0.2, 5), method="bounded").x
    p = softmax(held_out * scale)
    said = p.argmax(axis=1)
    known = truth != 2
    print(f"{real} pairs, held out by group; temperature {1 / scale:.3f}")
    print(f"three labels: macro-F1 {macro_f1(truth, said, (0, 1, 2)):.3f}, always neutral {macro_f1(truth, np.full(real, 2), (0, 1, 2)):.3f}")
    print(f"two labels:   macro-F1 {macro_f1(truth[known], said[known], (0, 1)):.3f}, always supports {macro_f1(truth[known], np.zeros(known.sum()), (0, 1)):.3f}")
    if args.predictions:
        with open(args.predictions, "w", encoding="utf-8") as out:
            for row, chances in zip(rows, p):
                probs = {label: float(chance) for label, chance in zip(LABELS, chances)}
                out.write(json.dumps({"id": row["id"], "gold": row["label"], "probs": probs}) + "\n")

    w = fit(x, y, worth) * scale
    text = "# Made by scripts/train-judge.py from SciFact (Wadden et al. 2020); claims CC BY 4.0, abstracts ODC-By 1.0.\n"
    text += " ".join(f"{value:.6g}" for value in w[-1]) + "\n"
    for n in range(x.shape[1]):
        text += " ".join(f"{value:.6g}" for value in (mean[n], spread[n], *w[n])) + "\n"
    args.out.write_text(text, encoding="utf-8")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
