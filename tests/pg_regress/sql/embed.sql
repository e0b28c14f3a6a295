-- rag.embed, rag.embed_query, rag.count_tokens. Right values: the model's own reference implementation.
WITH e AS (SELECT * FROM rag.embed(ARRAY['That is a happy person', 'That is a happy dog', 'That is a very happy person',
                                         'Today is a sunny day'], model => 'all-MiniLM-L6-v2'))
SELECT b.ordinal, abs(1 - (a.embedding <=> b.embedding) - (ARRAY[0.695, 0.943, 0.257])[b.ordinal - 1]) < 0.002 AS right
  FROM e a, e b WHERE a.ordinal = 1 AND b.ordinal > 1 ORDER BY 1;
SELECT ordinal, vector_dims(embedding), abs(vector_norm(embedding) - 1) < 1e-5 AS unit
  FROM rag.embed(ARRAY['a', NULL, '', E'emoji \U0001F600', '日本語'], model => 'all-MiniLM-L6-v2');
-- a vector depends on its text alone
SELECT (SELECT embedding FROM rag.embed(ARRAY['a short text']))
     = (SELECT embedding FROM rag.embed(ARRAY[repeat('a long text ', 40), 'a short text']) WHERE ordinal = 2) AS same;
SELECT rag.embed_query('a short text') = (SELECT embedding FROM rag.embed(ARRAY['a short text'])) AS same;
SELECT count(*) FROM rag.embed('{}');
SELECT rag.count_tokens(''), rag.count_tokens('a'), rag.count_tokens('hello world'), rag.count_tokens(repeat('a ', 300));
SELECT count(*) FROM rag.embed(ARRAY[repeat('word ', 300), 'short']);
SELECT vector_dims(rag.embed_query(repeat('word ', 300)));
SELECT * FROM rag.embed(ARRAY['a'], model => 'all-MiniLM');
SELECT rag.count_tokens('a', 'none');
SELECT rag.embed_query(NULL) IS NULL AS strict;
