# SPDX-License-Identifier: PostgreSQL

"""The quality of the BM25 leg on six judged collections, against an independent implementation, paired by question.

Called by quality.sh, on a server of its own; writes a page to standard output. The reference is computed anew, so that each
question can be compared; its means are checked against the table that came with the collections.

A passage is a document of the set; its text is title and text, as in the reference, and its terms are made by `rag.terms`.
The leg is `rag.search(…, mode => 'bm25')`. What weights of fields would do is computed here, from the same terms.
"""

import collections
import gzip
import json
import math
import os
import pathlib
import re
import subprocess
import sys

import bm25s
import numpy as np
import Stemmer
from scipy import sparse

SETS = ["scifact", "cranfield", "cacm", "cisi", "qmsum", "cosqa"]
K1, B, TOP = 1.2, 0.75, 100
DATA = pathlib.Path(sys.argv[1])
PSQL = [os.environ["PG_BIN"] + "/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]


def sql(text, given=None):
    done = subprocess.run(PSQL + ["-c", text], input=given, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"psql ended with {done.returncode}: {done.stderr}")
    return done.stdout


def copied(fields):
    """A line as COPY reads it."""
    escape = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
    return "\t".join(f.translate(escape) for f in fields) + "\n"


class Judged:
    """A set: documents, questions and judgments."""

    def __init__(self, name):
        folder = DATA / name
        corpus = next(folder.glob("corpus.jsonl*"))
        with (gzip.open if corpus.suffix == ".gz" else open)(corpus, "rt") as lines:
            rows = [json.loads(line) for line in lines]
        self.name = name
        self.ids = [row["_id"] for row in rows]
        self.titles = [row.get("title") or "" for row in rows]
        self.texts = [row.get("text") or "" for row in rows]
        self.speakers = [row.get("metadata", {}).get("speaker") or "" for row in rows]
        self.files = [row.get("metadata", {}).get("file") or row["_id"] for row in rows]
        self.symbols = [(re.search(r"(?:def|class)\s+(\w+)", text) or ["", ""])[1] for text in self.texts]
        self.qrels = collections.defaultdict(dict)
        for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
            query, document, grade = line.split("\t")
            self.qrels[query][document] = int(grade)
        queries = [json.loads(line) for line in (folder / "queries.jsonl").open()]
        self.queries = [(q["_id"], q["text"]) for q in queries if q["_id"] in self.qrels]

    def ndcg10(self, runs):
        """Of each question, as trec_eval counts it."""
        discount = [1 / math.log2(rank + 2) for rank in range(10)]
        values = []
        for (query, _), found in zip(self.queries, runs):
            grades = self.qrels[query]
            ideal = sum(g * d for g, d in zip(sorted(grades.values(), reverse=True), discount))
            gain = sum(max(grades.get(document, 0), 0) * d for document, d in zip(found, discount))
            values.append(gain / ideal if ideal > 0 else 0.0)
        return np.array(values)


# The reference.

PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")


def with_parts(text):
    words = []
    for word in re.findall(r"\w+", text):
        parts = PARTS.findall(word)
        words += [word] + (parts if len(parts) > 1 else [])
    return " ".join(words)


def reference(judged, texts, code):
    stemmer = Stemmer.Stemmer("english")
    prepare = with_parts if code else lambda text: text

    def tokenize(some):
        return bm25s.tokenize([prepare(t) for t in some], stopwords="en", stemmer=stemmer, token_pattern=r"(?u)\w+",
                              show_progress=False, return_ids=False)

    ranker = bm25s.BM25(method="lucene", k1=K1, b=B)
    ranker.index(tokenize(texts), show_progress=False)
    runs = []
    # A word that a question has twice counts twice.
    for tokens in tokenize([text for _, text in judged.queries]):
        scores = ranker.get_scores(tokens) if tokens else np.zeros(len(texts))
        best = np.argsort(-scores, kind="stable")[:TOP]
        runs.append([judged.ids[i] for i in best if scores[i] > 0])
    return judged.ndcg10(runs)


# The leg.

TABLE = "CREATE TABLE IF NOT EXISTS text (n int, id text, content text, emphasis text, file text); TRUNCATE text"


def load(name, judged, texts, names, files):
    """Makes a collection of the texts, without vectors, which the leg does not need; names count as they do in a chunk. Texts of
    one file are the passages of one document."""
    sql(TABLE)
    rows = zip(judged.ids, texts, names, files)
    sql("COPY text FROM STDIN", "".join(copied([str(n), *row]) for n, row in enumerate(rows)))
    sql(f"""
        SELECT rag.create_collection('{name}');
        INSERT INTO rag.source (collection_id, name, kind, location, options, text_search_config)
        SELECT id, '{name}', 'jsonl', '/nowhere', '{{}}', 'pg_catalog.english' FROM rag.collection WHERE name = '{name}';
        WITH new AS (INSERT INTO rag.document (source_id, uri, content_sha256, options_sha256, parser_version, media_type)
            SELECT s.id, t.file, sha256(convert_to(t.file, 'UTF8')), sha256(''), '', 'text/plain'
              FROM rag.source s, (SELECT DISTINCT file FROM text) t WHERE s.name = '{name}'
            RETURNING id, uri, source_id)
        INSERT INTO rag.chunk (chunk_key, document_id, ordinal, content, content_sha256, token_count, metadata, tsv, dl,
                               collection_id, source_id)
        SELECT gen_random_uuid(), n.id, t.n, t.content, sha256(convert_to(t.content, 'UTF8')), 0, jsonb_build_object('of', t.id), v.tsv,
               (SELECT coalesce(sum(cardinality(u.positions)), 0) FROM unnest(v.tsv) u), s.collection_id, s.id
          FROM (SELECT id, n, content, file, rag.terms(content, emphasis => emphasis) AS tsv FROM text OFFSET 0) t
          CROSS JOIN LATERAL (SELECT t.tsv) v JOIN new n ON n.uri = t.file JOIN rag.source s ON s.id = n.source_id
         ORDER BY t.n;""")


def leg(name, judged, settings="{}"):
    sql("CREATE TABLE IF NOT EXISTS question (n int, query text); TRUNCATE question")
    sql("COPY question FROM STDIN", "".join(copied([str(n), text]) for n, (_, text) in enumerate(judged.queries)))
    rows = sql(f"""SELECT q.n, s.metadata ->> 'of' FROM question q,
                     LATERAL rag.search(q.query, {TOP}, collection => '{name}', mode => 'bm25', candidate_k => {TOP},
                                        settings => '{settings}') s
                    ORDER BY q.n, s.rank""")
    runs = [[] for _ in judged.queries]
    for row in rows.splitlines():
        query, document = row.split("|", 1)
        runs[int(query)].append(document)
    return judged.ndcg10(runs)


# Weights of fields, by the same formula over the same terms.

TERMS = "rag.terms(t.content)"
LEXEMES = "to_tsvector('pg_catalog.english', t.content)"


def counts(texts, vocabulary, function):
    """A matrix of term frequencies."""
    sql(TABLE)
    sql("COPY text FROM STDIN", "".join(copied([str(n), "", t, "", ""]) for n, t in enumerate(texts)))
    rows = sql("SELECT t.n, json_agg(json_build_array(u.lexeme, cardinality(u.positions)))"
               f" FROM text t, unnest({function}) u GROUP BY 1")
    place, term, tf = [], [], []
    for row in rows.splitlines():
        n, pairs = row.split("|", 1)
        for lexeme, count in json.loads(pairs):
            place.append(int(n))
            term.append(vocabulary.setdefault(lexeme, len(vocabulary)))
            tf.append(count)
    return place, term, tf


class Fields:
    """The field and the rest of the texts of a set."""

    def __init__(self, judged, field, rest, function=TERMS):
        self.judged = judged
        vocabulary = {}
        parts = [counts(texts, vocabulary, function) for texts in (field, rest)]
        questions = counts([text for _, text in judged.queries], vocabulary, function)
        shape = (len(judged.ids), len(vocabulary))
        self.parts = [sparse.csc_matrix((tf, (place, term)), shape=shape, dtype=float) for place, term, tf in parts]
        self.questions = [[] for _ in judged.queries]
        for query, term, count in zip(*questions):
            self.questions[query].append((term, count))

    def runs(self, score):
        for terms in self.questions:
            scores = np.zeros(len(self.judged.ids))
            for term, count in terms:
                score(term, count, scores)
            best = np.argsort(-scores, kind="stable")[:10]
            yield [self.judged.ids[i] for i in best if scores[i] > 0]

    def idf(self, df):
        return math.log(1 + (len(self.judged.ids) - df + 0.5) / (df + 0.5))

    def repeated(self, weight, counted=True):
        """Each word of the field counts `weight` times, in its frequency and in the length; each word of the question as often as
        it is there, or once."""
        tf = (self.parts[0] * weight + self.parts[1]).tocsc()
        dl = np.asarray(tf.sum(axis=1)).ravel()
        norm = K1 * (1 - B + B * dl / dl.mean())

        def score(term, count, scores):
            rows, values = self.column(tf, term)
            weight = (count if counted else 1) * self.idf(len(rows))
            scores[rows] += weight * values * (K1 + 1) / (values + norm[rows])

        return self.judged.ndcg10(self.runs(score))

    def bm25f(self, weight, b_field):
        """BM25F (Zaragoza et al. 2004): each field has a length normalisation of its own."""
        scaled = []
        for part, w, b in zip(self.parts, (weight, 1), (b_field, B)):
            dl = np.asarray(part.sum(axis=1)).ravel()
            scaled.append(sparse.diags(w / (1 - b + b * dl / max(dl.mean(), 1e-9))) @ part)
        tf = (scaled[0] + scaled[1]).tocsc()

        def score(term, count, scores):
            rows, values = self.column(tf, term)
            scores[rows] += count * self.idf(len(rows)) * values * (K1 + 1) / (values + K1)

        return self.judged.ndcg10(self.runs(score))

    @staticmethod
    def column(matrix, term):
        span = slice(matrix.indptr[term], matrix.indptr[term + 1])
        return matrix.indices[span], matrix.data[span]


def interval(difference):
    """The mean of paired differences with its 95% interval, by 10,000 resamplings of the questions."""
    draws = np.random.default_rng(1).integers(0, len(difference), (10_000, len(difference)))
    low, high = np.quantile(difference[draws].mean(axis=1), [0.025, 0.975])
    return f"{difference.mean():+.4f} ({low:+.4f} to {high:+.4f})", high < 0


def stated():
    """nDCG@10 of the table that came with the sets."""
    table, name = {}, None
    for line in (DATA / "BASELINES.md").read_text().splitlines():
        if line.startswith("## "):
            name = line[3:].split(":")[0]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 10 and cells[0].startswith("bm25"):
            table[name, cells[0]] = float(cells[8])
    return table


def main():
    table = stated()
    sets = {name: Judged(name) for name in SETS}
    plain = {n: [f"{a} {b}".strip() for a, b in zip(s.titles, s.texts)] for n, s in sets.items()}
    cases = [(name, name, plain[name], sets[name].titles, "bm25 code+stem" if name == "cosqa" else "bm25 stem") for name in SETS]
    spoken = [f"{a} {b}".strip() for a, b in zip(sets["qmsum"].speakers, plain["qmsum"])]
    cases.append(("qmsum, speaker indexed", "qmsum", spoken, sets["qmsum"].speakers, "bm25 stem +speaker"))
    print("| set | questions | reference | of it, stated | reference, computed | BM25 leg | difference (95%) | |\n|---|---|---|---|---|---|---|---|")
    means = []
    for label, name, texts, names, system in cases:
        judged = sets[name]
        theirs = reference(judged, texts, "code" in system)
        collection = re.sub(r"\W+", "_", label)
        load(collection, judged, texts, names, judged.ids)
        ours = leg(collection, judged)
        difference, below = interval(ours - theirs)
        print(f"| {label} | {len(ours)} | {system} | {table[name, system]:.4f} | {theirs.mean():.4f} | {ours.mean():.4f} "
              f"| {difference} | {'significantly below' if below else 'not below'} |", flush=True)
        if label == name:
            means.append((table[name, system], theirs.mean(), ours.mean()))
    mean = np.mean(means, axis=0)
    print(f"| **mean of the six** | | | **{mean[0]:.4f}** | **{mean[1]:.4f}** | **{mean[2]:.4f}** | | |")

    print("\n## Whole documents\n")
    print("QMSum with its meetings as documents and speakers indexed: the leg alone, and fused with the ranks of the meetings. Differences\n"
          "are to the leg alone.\n")
    print("| `document_weight` | nDCG@10 | difference (95%) |\n|---|---|---|")
    judged = sets["qmsum"]
    load("meetings", judged, spoken, judged.speakers, judged.files)
    alone = leg("meetings", judged)
    print(f"| 0 | {alone.mean():.4f} | |", flush=True)
    for weight in (0.25, 0.5, 1, 2, 4):
        found = leg("meetings", judged, json.dumps({"document_weight": weight}))
        print(f"| {weight} | {found.mean():.4f} | {interval(found - alone)[0]} |", flush=True)

    print("\n## What the terms and the counts are worth\n")
    print("Titles count once here. Differences are those of a question's words counting as often as it has them.\n")
    print("| set | lexemes, each once | as often as asked | terms, each once | as often as asked |\n|---|---|---|---|---|")
    for name in SETS:
        judged, rest = sets[name], sets[name].texts
        lexemes, terms = (Fields(judged, judged.titles, rest, function) for function in (LEXEMES, TERMS))
        found = [model.repeated(1, counted) for model in (lexemes, terms) for counted in (False, True)]
        cells = [f"{found[0].mean():.4f}", f"{found[1].mean():.4f}, {interval(found[1] - found[0])[0]}",
                 f"{found[2].mean():.4f}", f"{found[3].mean():.4f}, {interval(found[3] - found[2])[0]}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)

    print("\n## Weights of fields\n")
    print("Differences are to the field that counts once.\n")
    print("| set, field | once | twice | three times | four times | BM25F ×1, b 0.3 | BM25F ×2, b 0.3 | BM25F ×2, b 0.75 | BM25F ×3, b 0.75 |\n"
          "|---|---|---|---|---|---|---|---|---|")
    fields = [(f"{n}, title", sets[n], sets[n].titles, sets[n].texts) for n in ["scifact", "cranfield", "cacm", "cisi"]]
    fields.append(("qmsum, speaker", sets["qmsum"], sets["qmsum"].speakers, sets["qmsum"].texts))
    fields.append(("cosqa, symbol", sets["cosqa"], sets["cosqa"].symbols, sets["cosqa"].texts))
    rows = []
    for label, judged, field, rest in fields:
        model = Fields(judged, field, rest)
        found = [model.repeated(w) for w in (1, 2, 3, 4)]
        found += [model.bm25f(w, b) for w, b in ((1, 0.3), (2, 0.3), (2, 0.75), (3, 0.75))]
        cells = [f"{found[0].mean():.4f}"] + [f"{f.mean():.4f}, {interval(f - found[0])[0]}" for f in found[1:]]
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)
        rows.append([f.mean() for f in found])
    print("| **mean** | " + " | ".join(f"**{m:.4f}**" for m in np.mean(rows, axis=0)) + " |")


if __name__ == "__main__":
    main()
    print((pathlib.Path(__file__).parent / "quality.tail.md").read_text(), end="")
