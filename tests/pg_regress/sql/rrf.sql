-- rag.rrf: score = sum of weight / (rrf_k + rank), rank from 1
SELECT rank, id, score, ranks FROM rag.rrf('[["a", "b", "c"], ["c", "d"]]');
SELECT id, score = 1.0 / 61 + 1.0 / 63 AS right FROM rag.rrf('[["a", "b", "c"], ["c", "d"]]') WHERE id = 'c';
SELECT id, round(score::numeric, 6) FROM rag.rrf('[[1, 2], [2, 3]]', rrf_k => 1, weights => '{1,0.5}');
-- the order of the lists changes nothing
SELECT (SELECT array_agg(id || score) FROM rag.rrf('[["a","b"],["b","c"],["d"]]'))
     = (SELECT array_agg(id || score) FROM rag.rrf('[["d"],["b","c"],["a","b"]]')) AS same;
-- over legs of one's own
SELECT f.id FROM rag.rrf((SELECT jsonb_agg(l ORDER BY l) FROM (
    SELECT jsonb_agg(x ORDER BY x) FROM generate_series(1, 3) x UNION ALL
    SELECT jsonb_agg(x ORDER BY x DESC) FROM generate_series(2, 4) x) AS l(l))) f LIMIT 2;
SELECT * FROM rag.rrf('[]');
SELECT * FROM rag.rrf('[[]]');
SELECT * FROM rag.rrf('{"a": 1}');
SELECT * FROM rag.rrf('["a"]');
SELECT * FROM rag.rrf('[[null]]');
SELECT * FROM rag.rrf('[["a"]]', rrf_k => 0);
SELECT * FROM rag.rrf('[["a"]]', weights => '{1,2}');
SELECT * FROM rag.rrf('[["a"]]', weights => '{-1}');
-- ids keep their digits
SELECT id FROM rag.rrf('[[12345678901234567890123, 1.50]]');

SELECT count(*) FROM rag.rrf(jsonb_build_array((SELECT jsonb_agg(i) FROM generate_series(1, 1000001) i)));
