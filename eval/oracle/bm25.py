# SPDX-License-Identifier: PostgreSQL

"""Right values for the BM25 unit test, by an independent implementation.

    python -m venv /tmp/v && /tmp/v/bin/pip install bm25s==0.3.16 && /tmp/v/bin/python eval/oracle/bm25.py
"""
import bm25s

corpus = [
    ["cat", "cat", "feline", "purr"],
    ["best", "dog", "friend", "human", "play"],
    ["bird", "fly"],
    ["cat", "fish", "fish", "swim", "water", "live", "purr"],
]
retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
retriever.index(corpus, show_progress=False)
for number, score in enumerate(retriever.get_scores(["cat", "fish"])):
    # bm25s leaves out the constant factor k1 + 1 of the numerator.
    print(number, round(float(score) * 2.2, 6))
