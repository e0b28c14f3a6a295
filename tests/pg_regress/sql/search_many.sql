-- rag.search_many

SELECT rag.create_collection('many') > 0 AS made;
SELECT count(*) FROM (VALUES ('tides', 'The harbour master keeps a log of tides.'), ('bread', 'Bread rises twice before it is baked.'),
    ('bees', 'Bees dance to tell where flowers are.'), ('glass', 'Glass is blown while it is hot.'), ('maps', 'Old maps show sea monsters.')) t (uri, content),
    rag.ingest(content, uri, 'text', collection => 'many');

-- Each query has the rows that it has alone, in every mode and with every argument.
CREATE TEMP TABLE queries AS
SELECT q.query, q.ordinal::int FROM unnest(ARRAY['log of tides', 'how do bees talk', 'hot glass', 'bread', 'bread', 'quixotic']) WITH ORDINALITY q (query, ordinal);
SELECT mode, settings, count(*) AS rows,
       count(*) FILTER (WHERE to_jsonb(m) - 'ordinal' <> to_jsonb(s)) AS other_rows
  FROM (VALUES ('hybrid', '{}'::jsonb), ('dense', '{}'), ('bm25', '{}'), ('hybrid', '{"fusion": "convex", "exact": true}'), ('bm25', '{"fuzzy": 1}')) v (mode, settings)
 CROSS JOIN LATERAL rag.search_many(ARRAY(SELECT query FROM queries ORDER BY ordinal), 3, '{"uri": ["b*", "t*", "glass"]}', 'many', mode, 50, 10, settings => settings) m
  JOIN queries q USING (ordinal)
 CROSS JOIN LATERAL (SELECT * FROM rag.search(q.query, 3, '{"uri": ["b*", "t*", "glass"]}', 'many', mode, 50, 10, settings => settings) r WHERE r.rank = m.rank) s
 GROUP BY mode, settings ORDER BY mode, settings;
SELECT ordinal, rank, uri FROM rag.search_many(ARRAY(SELECT query FROM queries ORDER BY ordinal), 1, collection => 'many', mode => 'bm25');
SELECT v.mode, (SELECT count(*) FROM rag.search_many(ARRAY(SELECT query FROM queries ORDER BY ordinal), 3, collection => 'many', mode => v.mode))
     = (SELECT count(*) FROM queries, rag.search(query, 3, collection => 'many', mode => v.mode)) AS as_many FROM (VALUES ('dense'), ('bm25'), ('hybrid')) v (mode);

-- More queries than are embedded at once.
SELECT count(DISTINCT ordinal), count(*), bool_and(uri = CASE ordinal % 2 WHEN 0 THEN 'bees' ELSE 'maps' END) AS each_its_own
  FROM rag.search_many(ARRAY(SELECT CASE n % 2 WHEN 0 THEN 'bees that dance ' ELSE 'monsters on maps ' END || n FROM generate_series(1, 150) n), 1, collection => 'many');

-- Joined with what was asked.
SELECT q.query, m.uri FROM queries q LEFT JOIN rag.search_many(ARRAY(SELECT query FROM queries ORDER BY ordinal), 1, collection => 'many', mode => 'bm25') m USING (ordinal) ORDER BY ordinal;

-- Nothing asked, nothing found; what is wrong is told with its place.
SELECT count(*) FROM rag.search_many('{}');
SELECT count(*) FROM rag.search_many(NULL);
SELECT count(*) FROM rag.search_many(ARRAY['bread', NULL], collection => 'many');
SELECT count(*) FROM rag.search_many(ARRAY['bread', ' '], collection => 'many');
SELECT count(*) FROM rag.search_many(ARRAY['bread', '"bread'], collection => 'many', settings => '{"phrase": true}');
SELECT count(*) FROM rag.search_many(ARRAY['bread'], collection => 'manny');
SELECT count(*) FROM rag.search_many(ARRAY['bread'], 0, collection => 'many');
SELECT count(*) FROM rag.search_many(ARRAY['bread'], mode => 'sparse');
SELECT count(*) FROM rag.search_many(array_fill('bread'::text, ARRAY[1001]), 100, collection => 'many', mode => 'bm25');
SELECT count(*) FROM rag.search_many(ARRAY['bread', 'tides'], collection => 'many', mode => 'bm25', filter => '{"source": "nowhere"}');

-- Told once, however many queries it concerns.
SELECT count(*) FROM rag.search_many(ARRAY[repeat('tides of the sea ', 200), repeat('bread and water ', 200), 'bees'], 1, collection => 'many', mode => 'dense');

SELECT rag.drop_source('inline/many');
SELECT rag.drop_collection('many');
