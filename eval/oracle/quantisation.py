#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Compares model folders on one judged collection: nDCG@10 of exact dense search, speed, memory.

Owns: the figures of eval/results/int8-vs-fp32.md. It is an oracle: it shares no code with the
product (own batching, pooling, metric), so that both being wrong in the same way is unlikely.

  quantisation.py --data FOLDER MODEL_FOLDER [MODEL_FOLDER...]

FOLDER is in BEIR layout (corpus.jsonl[.gz], queries.jsonl, qrels.tsv). The first model is the
reference of the others. Needs numpy, onnxruntime, tokenizers.
"""

import argparse
import gzip
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

WINDOW = 256
THREADS = 2
SPEED_TEXTS = 128  # a fixed slice of the corpus, timed several times: the best round is the figure
SPEED_ROUNDS = 3


def read_jsonl(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_collection(folder):
    packed = folder / "corpus.jsonl.gz"
    corpus = read_jsonl(packed if packed.exists() else folder / "corpus.jsonl")
    queries = read_jsonl(folder / "queries.jsonl")
    qrels = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            qrels.setdefault(query, {})[document] = int(grade)
    texts = [(d.get("title", "") + " " + d["text"]).strip() for d in corpus]
    return [d["_id"] for d in corpus], texts, [q for q in queries if q["_id"] in qrels], qrels


class Model:
    """A model folder as sentence-transformers would run it: mean or first-token pooling, then L2."""

    def __init__(self, folder):
        import onnxruntime
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(WINDOW)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = str(folder / "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        pooling = json.loads((folder / "1_Pooling/config.json").read_text())
        self.cls = pooling.get("pooling_mode_cls_token", False)

    def run(self, tokens):
        width = max(len(t) for t in tokens)
        ids = np.zeros((len(tokens), width), np.int64)
        mask = np.zeros_like(ids)
        for row, t in enumerate(tokens):
            ids[row, : len(t)], mask[row, : len(t)] = t, 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self.session.run(None, feeds)[0]
        vectors = hidden[:, 0] if self.cls else (hidden * mask[..., None]).sum(1) / mask.sum(1)[:, None]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed(self, texts, batch=16):
        """Length-sorted batches: padding is computed and thrown away, so there should be little of it."""
        tokens = [self.tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(texts)), key=lambda i: (len(tokens[i]), i))
        out = [None] * len(texts)
        for start in range(0, len(order), batch):
            part = order[start : start + batch]
            for i, vector in zip(part, self.run([tokens[i] for i in part])):
                out[i] = vector
        return np.array(out, np.float32)


def ndcg10(ranked, grades):
    gain = sum(grades.get(d, 0) / math.log2(i + 2) for i, d in enumerate(ranked[:10]))
    ideal = sorted(grades.values(), reverse=True)[:10]
    return gain / sum(g / math.log2(i + 2) for i, g in enumerate(ideal))


def measure(folder, data, vectors_file):
    """One model in this process (so that memory is its own); vectors are kept for the comparison."""
    names, texts, queries, qrels = read_collection(data)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = Model(folder)
    sample = texts[:SPEED_TEXTS]
    model.embed(sample[:32])
    best = work = math.inf
    for _ in range(SPEED_ROUNDS):
        start, start_work = time.perf_counter(), time.process_time()
        model.embed(sample)
        best = min(best, time.perf_counter() - start)
        work = min(work, time.process_time() - start_work)
    query_times = []
    for q in queries[:50]:
        start = time.perf_counter()
        model.embed([q["text"]])
        query_times.append(time.perf_counter() - start)
    corpus = model.embed(texts)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - loaded) // 1024
    asked = model.embed([q["text"] for q in queries])
    alone = np.concatenate([model.embed([q["text"]]) for q in queries])
    scores = asked @ corpus.T
    values = []
    for row, q in enumerate(queries):
        # Ties by document id, so that the order of the file cannot change the figure.
        top = sorted(np.argpartition(-scores[row], 50)[:50], key=lambda i: (-scores[row, i], names[i]))
        values.append(ndcg10([names[i] for i in top], qrels[q["_id"]]))
    np.save(vectors_file, corpus)
    return {
        "model": folder.name,
        "ndcg10": float(np.mean(values)),
        "texts_per_second": SPEED_TEXTS / best,
        "cpu_ms": 1000 * work / SPEED_TEXTS,
        "query_ms": 1000 * float(np.median(query_times)),
        "memory_mb": int(memory),
        "file_mb": round((folder / "model.onnx").stat().st_size / 1e6, 1),
        "batch_cosine": float((asked * alone).sum(1).min()),
        "documents": len(texts),
        "queries": len(queries),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, default=Path("target"), help="where vectors are kept meanwhile")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.scratch.mkdir(parents=True, exist_ok=True)
    files = [args.scratch / f"vectors-{i}.npy" for i in range(len(args.models))]
    if args.one:
        print(json.dumps(measure(args.models[0], args.data, args.scratch / "vectors-one.npy")))
        return
    print("| model | nDCG@10 | texts/s | CPU ms/text | one query, ms | memory, MB | file, MB | cosine to reference: mean, min | same text, other batch: min cosine |")
    print("|---|---|---|---|---|---|---|---|---|")
    reference = None
    for folder, file in zip(args.models, files):
        command = [sys.executable, __file__, "--one", "--data", args.data, "--scratch", args.scratch, folder]
        r = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        (args.scratch / "vectors-one.npy").rename(file)
        vectors = np.load(file)
        reference = vectors if reference is None else reference
        cosine = (vectors * reference).sum(1)
        print(
            f"| {r['model']} | {r['ndcg10']:.4f} | {r['texts_per_second']:.1f} | {r['cpu_ms']:.1f} | {r['query_ms']:.1f} | {r['memory_mb']} "
            f"| {r['file_mb']} | {cosine.mean():.4f}, {cosine.min():.4f} | {r['batch_cosine']:.4f} |",
            flush=True,
        )
    for file in files:
        file.unlink()


if __name__ == "__main__":
    main()
