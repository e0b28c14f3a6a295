# SPDX-License-Identifier: PostgreSQL

"""Makes ties.json: 300 random rankings full of ties, with what pytrec_eval (the C code of trec_eval) says of them once
ties are broken by the project's rule, and what it says when it breaks them itself.

    /tmp/oracle/bin/python eval/oracle/ties.py > eval/oracle/ties.json      (see metrics.py)

The rule is written here a second time: equal scores by SHA-256 of the question, a zero byte and the passage's key. Where
whole documents are asked for, a document stands where its best passage does. Grades are 0 to 3, lists may be empty or hold
nothing that is judged; a query that is missing has an empty list here, and what nobody judged is among the results.
"""

import hashlib
import json
import random

import pytrec_eval

FINAL = ("nDCG@5", "nDCG@10", "MRR@10", "MAP", "Recall@1", "Recall@5", "Recall@10", "Recall@20", "Recall@50", "Recall@100",
         "success@1", "success@5", "success@10", "P@10")
TREC = {"nDCG": "ndcg_cut", "Recall": "recall", "success": "success", "P": "P"}


def key(chunk):
    return chunk.to_bytes(16, "big")


def broken(question, found):
    """Best first, ties by the hash."""
    return sorted(found, key=lambda f: (-f[2], hashlib.sha256(question.encode() + b"\0" + key(f[0])).digest()))


def items(unit, found):
    """Each item once, at its first place."""
    return list(dict.fromkeys(str(f[1] if unit == "document" else f[0]) for f in found))


def judged(qrels, run):
    """All metrics of one ranking; `run` is item → score."""
    if not run:
        return {metric: 0.0 for metric in FINAL}
    cuts = "5,10,1,20,50,100"
    measures = {f"{m}.{cuts}" for m in TREC.values()} | {"map"}
    of = pytrec_eval.RelevanceEvaluator({"q": qrels}, measures).evaluate({"q": run}).get("q", {})
    top = dict(sorted(run.items(), key=lambda i: (i[1], i[0]), reverse=True)[:10])
    reciprocal = pytrec_eval.RelevanceEvaluator({"q": qrels}, {"recip_rank"}).evaluate({"q": top}).get("q", {})
    out = {}
    for metric in FINAL:
        name, _, cut = metric.partition("@")
        if name == "MAP":
            out[metric] = of.get("map", 0.0)
        elif name == "MRR":
            out[metric] = reciprocal.get("recip_rank", 0.0)
        else:
            out[metric] = of.get(f"{TREC[name]}_{cut}", 0.0)
    return {metric: round(value, 6) for metric, value in out.items()}


def main():
    rng = random.Random(20261202)
    cases = []
    for n in range(300):
        question, unit = f"question {n}", rng.choice(["chunk", "document"])
        chunks = rng.sample(range(1, 61), rng.choice([0, 1, 5, 12, 20, 30]))
        levels = rng.choice([1, 2, 4, 30])
        found = [[c, (c + 4) // 5, rng.randrange(levels) / 8] for c in chunks]
        pool = range(1, 13) if unit == "document" else range(1, 61)
        grades = {str(i): rng.choice([0, 1, 1, 2, 3]) for i in rng.sample(pool, rng.randint(1, 10))}
        ranked = items(unit, broken(question, found))
        run = {item: float(len(ranked) - place) for place, item in enumerate(ranked)}
        # Left alone, trec_eval orders equal scores by the spelling of ids.
        best = {}
        for f in found:
            item = str(f[1] if unit == "document" else f[0])
            best[item] = max(best.get(item, -1.0), f[2])
        cases.append({"question": question, "unit": unit, "found": found, "grades": grades,
                      "expected": judged(grades, run), "raw": judged(grades, best)["nDCG@10"]})
    print("[" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]")


if __name__ == "__main__":
    main()
