# SPDX-License-Identifier: PostgreSQL

"""Makes metrics.json: a small run with its judgments, and what pytrec_eval (the C code of trec_eval) says of it.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install pytrec-eval-terrier
    /tmp/oracle/bin/python eval/oracle/metrics.py > eval/oracle/metrics.json

The fixture is made to hurt: equal scores, scores that differ only beyond single precision, grades of 0 and above 1,
negative grades, fewer results than the cut, judged queries without results or without a relevant document, and results
for a query that nobody judged. `run` rows are in no useful order: the tie rule has to find it.
"""

import json
import random
import struct

import pytrec_eval

CUTS = [1, 3, 5, 10, 20, 100]


def single(x):
    """What trec_eval sees of a score: it keeps single precision."""
    return struct.unpack("f", struct.pack("f", x))[0]


def trec_order(results):
    """Score descending, then document id descending, as trec_eval sorts."""
    return sorted(results, key=lambda d: (single(results[d]), d), reverse=True)


def fixture():
    rng = random.Random(20090711)
    qrels, run = {}, {}
    for q in range(24):
        judged = rng.sample(range(60), rng.randint(1, 25))
        qrels[f"q{q}"] = {f"d{d}": rng.choice([0, 0, 1, 1, 1, 2, 3]) for d in judged}
        if q % 7 == 3:
            qrels[f"q{q}"][f"d{judged[0]}"] = -1
        found = rng.sample(range(80), rng.choice([2, 7, 40, 80]))
        # Two decimals of a small range: many ties.
        run[f"q{q}"] = {f"d{d}": round(rng.uniform(0, 1), 1 if q % 2 else 2) for d in found}
    # Beyond single precision these are one score, so the id decides.
    run["q0"].update({"d1": 0.987654321, "d2": 0.987654322, "d3": 0.987654320})
    qrels["q0"].update({"d1": 2, "d2": 0, "d3": 1})
    qrels["only-irrelevant"] = {"d1": 0, "d2": 0}
    run["only-irrelevant"] = {"d1": 0.5, "d2": 0.25}
    qrels["no-results"] = {"d1": 1}
    run["nobody-judged"] = {"d1": 1.0}
    return qrels, run


def expected(qrels, run):
    measures = {f"{m}.{','.join(map(str, CUTS))}" for m in ("ndcg_cut", "recall", "P", "success")}
    values = pytrec_eval.RelevanceEvaluator(qrels, measures | {"map"}).evaluate(run)
    names = {"ndcg_cut": "nDCG", "recall": "Recall", "P": "P", "success": "success"}
    out = {}
    for query in qrels:
        of = values.get(query, {})
        row = {f"{shown}@{k}": of.get(f"{name}_{k}", 0.0) for name, shown in names.items() for k in CUTS}
        row["MAP"] = of.get("map", 0.0)
        for k in CUTS:
            # trec_eval's recip_rank has no cut, so the run is cut instead.
            results = run.get(query, {})
            cut = {query: {d: results[d] for d in trec_order(results)[:k]}}
            judged = pytrec_eval.RelevanceEvaluator({query: qrels[query]}, {"recip_rank"})
            row[f"MRR@{k}"] = judged.evaluate(cut).get(query, {}).get("recip_rank", 0.0) if results else 0.0
        out[query] = {metric: round(value, 6) for metric, value in sorted(row.items())}
    return out


def main():
    qrels, run = fixture()
    per_query = expected(qrels, run)
    metrics = list(next(iter(per_query.values())))
    mean = {m: round(sum(row[m] for row in per_query.values()) / len(per_query), 6) for m in metrics}
    rows = {q: [[d, s] for d, s in results.items()] for q, results in run.items()}
    lines = [f'"qrels": {json.dumps(qrels)}', f'"run": {json.dumps(rows)}']
    lines += [f'"mean": {json.dumps(mean)}', f'"expected": {json.dumps(per_query)}']
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
