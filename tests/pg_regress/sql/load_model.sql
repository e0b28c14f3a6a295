-- rag.load_model
SELECT rag.load_model('mine', 'embedding', 'all-MiniLM-L6-v2') >= 100 AS loaded;
SELECT name, path, length(sha256), dimensions, max_tokens, pooling, normalize FROM rag.model WHERE name = 'mine';
SELECT rag.embed_query('a', model => 'mine') = rag.embed_query('a', model => 'all-MiniLM-L6-v2') AS same;
SELECT rag.load_model('mine', 'embedding', 'all-MiniLM-L6-v2');
\set VERBOSITY sqlstate
SELECT rag.load_model('other', 'embedding', 'no-such-model');
\set VERBOSITY terse
SELECT rag.load_model('other', 'embedding', '/etc');
SELECT rag.load_model('other', 'reranker', 'all-MiniLM-L6-v2');
SELECT rag.load_model('other', 'embeding', 'all-MiniLM-L6-v2');
-- another file than the one that was loaded is refused
UPDATE rag.model SET sha256 = repeat('0', 64) WHERE name = 'mine';
SELECT rag.embed_query('a', model => 'mine');
DELETE FROM rag.model WHERE name = 'mine';
