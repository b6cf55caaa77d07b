#!/usr/bin/env python3
"""Makes the weights of the embedded judge, and decides where it may speak.

    python -m venv .venv && .venv/bin/pip install numpy==2.3.* scipy==1.16.*
    cargo build --release --manifest-path bench/peers/reader/Cargo.toml
    .venv/bin/python scripts/train-judge.py --data ../shared/data \\
        --reader bench/peers/reader/target/release/bench-peer-reader \\
        --out crates/matsu-adapters/src/judge/weights.txt

Each language has weights of its own: English from SciFact and FM2, Japanese from JNLI, Korean from
KLUE-NLI. SciFact has no neutral pairs, so those are made: every claim is matched with the evidence of
another group, half of them with the evidence that shares most words with it (the hard ones), half with
any. The features come from the judge's own code, through the reader.

Other sources often say the very same, or its plain denial. So every English claim of SciFact is also
matched with itself, and with itself turned around by one small word ("reduces" to "does not reduce").
These made pairs only ever train.

Multinomial logistic regression with a quadratic penalty, fitted by L-BFGS, in ten folds by group: no
pair is judged by weights that have seen its claim. The judge speaks a label of a language only where its
precision is at least 0.8 at a recall of at least 0.1 in every set of that language. The probability
above which it speaks is chosen for each fold on the other folds; the figures are of the fold itself, so
neither weights nor threshold have seen what they are judged by. A label that does not get there is off.
--figures writes what is printed as JSON.
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
SETS = {
    "en": ("scifact-pairs-train", "fm2-dev"),
    "ja": ("jnli-valid",),
    "ko": ("klue-nli-half",),
}
PRECISION_MIN, RECALL_MIN = 0.8, 0.1
# A threshold is chosen with a margin: what is just right on some folds is just wrong on the next.
PRECISION_AIMED = 0.84
PENALTY = 1.0
# A made pair is plainer than life: it counts for this much of a real one.
PLAIN_WEIGHT = 0.4
WORD = re.compile(r"\w{4,}")


def load(data: Path, name: str) -> list[dict]:
    with gzip.open(data / f"stance/{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        known = [{**json.loads(line), "set": name} for line in lines]
    return known + made_neutral(known) if all(row["label"] != "neutral" for row in known) else known


def made_neutral(known: list[dict]) -> list[dict]:
    chance = random.Random(1)
    words = [set(WORD.findall(row["evidence"].lower())) for row in known]
    made = []
    for row in known:
        others = [n for n, other in enumerate(known) if other["group"] != row["group"]]
        wanted = set(WORD.findall(row["claim"].lower()))
        hard = max(others, key=lambda n: len(wanted & words[n]))
        chosen = hard if chance.random() < 0.5 else chance.choice(others)
        made.append({**row, "id": row["id"] + "-neutral", "evidence": known[chosen]["evidence"], "label": "neutral"})
    return made


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


def ece(y: np.ndarray, p: np.ndarray) -> float:
    """Expected calibration error of the likeliest label, in ten bins."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    place = np.minimum((sure * 10).astype(int), 9)
    gaps = [(place == n).mean() * abs(right[place == n].mean() - sure[place == n].mean()) for n in range(10) if (place == n).any()]
    return float(sum(gaps))


def threshold(y: np.ndarray, p: np.ndarray, sets: np.ndarray, label: int) -> float | None:
    """The least probability with which the label is right often enough in every set; none if there is none."""
    for least in np.arange(0.40, 0.995, 0.01):
        is_good = True
        for name in np.unique(sets):
            said = (p[:, label] >= least) & (p.argmax(axis=1) == label) & (sets == name)
            gold = (y == label) & (sets == name)
            hit = (said & gold).sum()
            is_good &= bool(said.any() and hit / said.sum() >= PRECISION_AIMED and hit / gold.sum() >= RECALL_MIN)
        if is_good:
            return float(least)
    return None


class Language:
    """The judge of one language, judged by folds."""

    def __init__(self, name: str, data: Path, reader: Path):
        self.name = name
        rows = [row for known in SETS[name] for row in load(data, known)]
        self.real = len(rows)
        if name == "en":
            rows += [{**row, "set": "made"} for row in plain([row for row in rows if row["set"].startswith("scifact")])]
        self.rows = rows
        x = features(reader, rows)
        self.y = np.array([LABELS.index(row["label"]) for row in rows])
        self.mean, self.spread = x[: self.real].mean(axis=0), x[: self.real].std(axis=0)
        self.spread[self.spread == 0] = 1
        self.x = (x - self.mean) / self.spread
        # Sets of one language count alike, however many pairs they have.
        share = {known: sum(row["set"] == known for row in rows) for known in {row["set"] for row in rows}}
        most = max(share[known] for known in SETS[name])
        self.worth = np.array([PLAIN_WEIGHT if row["set"] == "made" else (most / share[row["set"]]) ** 0.5 for row in rows])
        groups = sorted({row["group"] for row in rows})
        random.Random(2).shuffle(groups)
        order = {group: n % FOLDS for n, group in enumerate(groups)}
        self.fold = np.array([order[row["group"]] for row in rows])
        self.judge()

    def judge(self) -> None:
        held_out = np.zeros((len(self.y), len(LABELS)))
        for n in range(FOLDS):
            seen = self.fold != n
            held_out[~seen] = scores(self.x[~seen], fit(self.x[seen], self.y[seen], self.worth[seen]))
        real = slice(0, self.real)
        self.truth, self.sets = self.y[real], np.array([row["set"] for row in self.rows[real]])
        held_out, self.folds = held_out[real], self.fold[real]

        def surprise(scale):
            return -np.log(softmax(held_out * scale)[np.arange(self.real), self.truth] + 1e-12).mean()

        self.scale = minimize_scalar(surprise, bounds=(0.2, 5), method="bounded").x
        self.p = softmax(held_out * self.scale)
        # Whether each label is spoken for each pair, with the threshold that the other folds gave.
        self.spoken = np.zeros((self.real, 2), bool)
        for n in range(FOLDS):
            mine = self.folds == n
            for label in (0, 1):
                least = threshold(self.truth[~mine], self.p[~mine], self.sets[~mine], label)
                if least is not None:
                    self.spoken[mine, label] = (self.p[mine, label] >= least) & (self.p[mine].argmax(axis=1) == label)
        self.least = [None, None]
        for label in (0, 1):
            figures = [self.spoken_in(known, label) for known in SETS[self.name]]
            if all(one["precision"] >= PRECISION_MIN and one["recall"] >= RECALL_MIN for one in figures):
                self.least[label] = threshold(self.truth, self.p, self.sets, label)

    def spoken_in(self, known: str, label: int) -> dict:
        said, gold = self.spoken[:, label] & (self.sets == known), (self.truth == label) & (self.sets == known)
        hit = int((said & gold).sum())
        return {"precision": hit / max(1, int(said.sum())), "recall": hit / max(1, int(gold.sum()))}

    def figures(self) -> list[dict]:
        found = []
        for known in SETS[self.name]:
            of_set = self.sets == known
            truth, p = self.truth[of_set], self.p[of_set]
            majority = np.bincount(truth, minlength=3).argmax()
            found.append({
                "language": self.name,
                "set": known,
                "pairs": int(of_set.sum()),
                "macro_f1": macro_f1(truth, p.argmax(axis=1), (0, 1, 2)),
                "majority_f1": macro_f1(truth, np.full(len(truth), majority), (0, 1, 2)),
                "ece": ece(truth, p),
                "labels": {
                    LABELS[label]: {**self.spoken_in(known, label), "is_on": self.least[label] is not None}
                    for label in (0, 1)
                },
            })
        return found

    def text(self) -> str:
        """The weights with the thresholds. Those of a label that is off still give the numbers that people correct."""
        w = fit(self.x, self.y, self.worth) * self.scale
        named = " ".join("off" if least is None else f"{least:.2f}" for least in self.least)
        text = f"[{self.name}] {named}\n" + " ".join(f"{value:.6g}" for value in w[-1]) + "\n"
        for n in range(self.x.shape[1]):
            text += " ".join(f"{value:.6g}" for value in (self.mean[n], self.spread[n], *w[n])) + "\n"
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--reader", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figures", type=Path)
    args = parser.parse_args()
    found, texts = [], []
    for name in SETS:
        language = Language(name, args.data, args.reader.resolve())
        found += language.figures()
        texts.append(language.text())
    for one in found:
        spoken = "; ".join(
            f"{label} {'on' if seen['is_on'] else 'off'}, precision {seen['precision']:.3f}, recall {seen['recall']:.3f}"
            for label, seen in one["labels"].items()
        )
        print(
            f"{one['language']} {one['set']}: {one['pairs']} pairs, macro-F1 {one['macro_f1']:.3f}, "
            f"majority {one['majority_f1']:.3f}, ECE {one['ece']:.3f}; {spoken}"
        )
    if args.figures:
        args.figures.write_text(json.dumps(found), encoding="utf-8")
    if args.out:
        head = (
            "# Made by scripts/train-judge.py from SciFact (Wadden et al. 2020; claims CC BY 4.0, abstracts ODC-By 1.0),\n"
            "# FM2 (Apache-2.0, CC BY-SA), JNLI and KLUE-NLI (CC BY-SA 4.0). A section for each language:\n"
            "# the probabilities above which it says supports and refutes, then biases, then features.\n"
        )
        args.out.write_text(head + "".join(texts), encoding="utf-8")
        print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
