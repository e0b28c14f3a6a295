-- rag.search: filters

SELECT rag.create_collection('filtered') > 0 AS made;
SELECT count(*) FROM generate_series(0, 39) n, rag.ingest('stone ' || n || ' lies beside stone ' || n * 7 % 40,
    (ARRAY['guide/', 'guide/deep/', 'src/', 'src/deep/', 'notes'])[1 + n % 5] || n || (ARRAY['.md', '.rs'])[1 + n % 2], 'text',
    CASE n % 7 WHEN 0 THEN '{}' WHEN 1 THEN jsonb_build_object('votes', n) WHEN 2 THEN jsonb_build_object('votes', n || '') WHEN 3 THEN jsonb_build_object('votes', null, 'team', 'search')
               WHEN 4 THEN jsonb_build_object('team', 'core', 'tags', jsonb_build_array('a', n)) WHEN 5 THEN jsonb_build_object('votes', n + 0.5, 'team', jsonb_build_object('name', 'core', 'gt', n))
               ELSE jsonb_build_object('deep', jsonb_build_object('team', 'search', 'votes', -n), 'day', '2026-01-' || lpad(n::text, 2, '0')) END, collection => 'filtered');
UPDATE rag.chunk c SET language = (ARRAY['rust', 'go', NULL])[1 + id % 3], role = (ARRAY['test', NULL, 'documentation', 'reference'])[1 + id % 4], speaker = (ARRAY['Ann Lee', 'Bo', NULL])[1 + id / 2 % 3],
       page_start = CASE WHEN id % 3 > 0 THEN 1 + id % 9 END, page_end = CASE WHEN id % 3 > 0 THEN 2 + id % 9 END, symbol_kind = CASE WHEN id % 5 = 0 THEN 'function' END
 WHERE c.collection_id = (SELECT id FROM rag.collection WHERE name = 'filtered');
UPDATE rag.document d SET published_at = CASE WHEN id % 4 > 0 THEN timestamptz '2026-01-01 00:00Z' + id % 11 * interval '1 day' END, project = (ARRAY['one', 'two', NULL])[1 + id % 3],
       path = CASE WHEN uri LIKE '%.rs' THEN uri END, commit = CASE WHEN uri LIKE '%.rs' THEN 'c0ffee' END
 WHERE d.source_id = (SELECT id FROM rag.source WHERE name = 'inline/filtered');

-- What each filter means, said in SQL by hand.
CREATE TEMP TABLE meanings (filter jsonb, meaning text);
INSERT INTO meanings VALUES
    ('{}', 'true'),
    ('{"language": "rust"}', $$language = 'rust'$$),
    ('{"language": ["rust", "go"]}', $$language IN ('rust', 'go')$$),
    ('{"language": []}', $$false$$),
    ('{"language": {"not": "rust"}}', $$language IS DISTINCT FROM 'rust'$$),
    ('{"language": {"not": ["rust", "go"]}}', $$language IS NULL$$),
    ('{"language": {"exists": true}}', $$language IS NOT NULL$$),
    ('{"language": {"exists": false}}', $$language IS NULL$$),
    ('{"language": {"not": {"not": "rust"}}}', $$language = 'rust'$$),
    ('{"language": {"exists": true, "not": "go"}}', $$language = 'rust'$$),
    ('{"language": "rust", "role": "test"}', $$language = 'rust' AND role = 'test'$$),
    ('{"not": {"language": "rust", "role": "test"}}', $$NOT coalesce(language = 'rust' AND role = 'test', false)$$),
    ('{"not": {"not": {"language": "rust", "role": "test"}}}', $$language = 'rust' AND role = 'test'$$),
    ('{"role": {"prefix": "re"}}', $$role LIKE 're%'$$),
    ('{"role": {"prefix": ["re", "doc"]}}', $$role LIKE 're%' OR role LIKE 'doc%'$$),
    ('{"role": {"prefix": ""}}', $$role IS NOT NULL$$),
    ('{"content_role": {"not": {"prefix": "re"}}}', $$role IS DISTINCT FROM 'reference'$$),
    ('{"speaker": "Ann Lee"}', $$speaker = 'Ann Lee'$$),
    ('{"speaker": {"prefix": "Ann"}}', $$speaker = 'Ann Lee'$$),
    ('{"symbol_kind": "function"}', $$symbol_kind = 'function'$$),
    ('{"project": ["one"]}', $$project = 'one'$$),
    ('{"commit": "c0ffee"}', $$commit = 'c0ffee'$$),
    ('{"ref": {"exists": true}}', $$false$$),
    ('{"repository": {"exists": false}}', $$true$$),
    ('{"source": "inline/filtered"}', $$true$$),
    ('{"source": {"not": "inline/filtered"}}', $$false$$),
    ('{"source_kind": "inline"}', $$true$$),
    ('{"source_type": {"prefix": "inl"}}', $$true$$),
    ('{"uri": "guide/*"}', $$uri LIKE 'guide/%' AND uri NOT LIKE 'guide/%/%'$$),
    ('{"uri": "guide/**"}', $$uri LIKE 'guide/%'$$),
    ('{"uri": ["**/*.rs", "notes*"]}', $$uri LIKE '%.rs' OR uri LIKE 'notes%'$$),
    ('{"uri": {"not": "guide/**"}}', $$uri NOT LIKE 'guide/%'$$),
    ('{"uri": {"prefix": "src/"}}', $$uri LIKE 'src/%'$$),
    ('{"uri": {"prefix": "src/*"}}', $$false$$),
    ('{"path": "src/**"}', $$path LIKE 'src/%'$$),
    ('{"path": {"not": "src/**"}}', $$coalesce(path, '') NOT LIKE 'src/%'$$),
    ('{"page": 3}', $$page_start <= 3 AND page_end >= 3$$),
    ('{"page": {"gte": 3, "lt": 5}}', $$page_end >= 3 AND page_start < 5$$),
    ('{"page": {"not": 3}}', $$NOT coalesce(page_start <= 3 AND page_end >= 3, false)$$),
    ('{"page": {"exists": false}}', $$page_start IS NULL$$),
    ('{"line": {"lte": 1}}', $$line_start <= 1$$),
    ('{"published_at": {"gte": "2026-01-04"}}', $$published_at >= '2026-01-04 00:00Z'$$),
    ('{"published_at": {"gt": "2026-01-04T00:00:00Z", "lte": "2026-01-07T02:00:00+02:00"}}', $$published_at > '2026-01-04 00:00Z' AND published_at <= '2026-01-07 00:00Z'$$),
    ('{"published_at": "2026-01-04"}', $$published_at = '2026-01-04 00:00Z'$$),
    ('{"published_at": {"not": {"gte": "2026-01-04"}}}', $$coalesce(published_at < '2026-01-04 00:00Z', true)$$),
    ('{"published_at": {"exists": false}}', $$published_at IS NULL$$),
    ('{"metadata.team": "core"}', $$metadata -> 'team' = '"core"'$$),
    ('{"metadata.team": ["core", "search"]}', $$metadata -> 'team' IN ('"core"', '"search"')$$),
    ('{"metadata.team": {"not": "core"}}', $$metadata -> 'team' IS DISTINCT FROM '"core"'$$),
    ('{"metadata.team": {"exists": true}}', $$metadata ? 'team'$$),
    ('{"metadata.team": {"prefix": "se"}}', $$metadata ->> 'team' LIKE 'se%' AND jsonb_typeof(metadata -> 'team') = 'string'$$),
    ('{"metadata.team": {"name": "core"}}', $$metadata -> 'team' ->> 'name' = 'core'$$),
    ('{"metadata.team": [{"gt": 5}]}', $$metadata -> 'team' -> 'gt' = '5'$$),
    ('{"metadata.team.name": "core"}', $$metadata -> 'team' ->> 'name' = 'core'$$),
    ('{"metadata.votes": {"exists": true}}', $$metadata -> 'votes' <> 'null'$$),
    ('{"metadata.votes": {"exists": false}}', $$coalesce(metadata -> 'votes', 'null') = 'null'$$),
    ('{"metadata.votes": null}', $$metadata -> 'votes' = 'null'$$),
    ('{"metadata.votes": {"gte": 15}}', $$CASE jsonb_typeof(metadata -> 'votes') WHEN 'number' THEN (metadata ->> 'votes')::float8 >= 15 END$$),
    ('{"metadata.votes": {"gt": 5, "lt": 29.75}}', $$CASE jsonb_typeof(metadata -> 'votes') WHEN 'number' THEN (metadata ->> 'votes')::float8 > 5 AND (metadata ->> 'votes')::float8 < 29.75 END$$),
    ('{"metadata.votes": {"gte": "2"}}', $$CASE jsonb_typeof(metadata -> 'votes') WHEN 'string' THEN metadata ->> 'votes' >= '2' COLLATE "C" END$$),
    ('{"metadata.votes": {"not": {"gte": 15}}}', $$NOT coalesce(CASE jsonb_typeof(metadata -> 'votes') WHEN 'number' THEN (metadata ->> 'votes')::float8 >= 15 END, false)$$),
    ('{"metadata.deep.votes": {"lt": -10}}', $$(metadata -> 'deep' ->> 'votes')::float8 < -10$$),
    ('{"metadata.day": {"gte": "2026-01-13", "lt": "2026-01-28"}}', $$metadata ->> 'day' >= '2026-01-13' AND metadata ->> 'day' < '2026-01-28'$$),
    ('{"metadata.tags": "a"}', $$metadata -> 'tags' ? 'a'$$),
    ('{"metadata.tags": {"not": ["a"]}}', $$NOT coalesce(metadata -> 'tags' ? 'a', false)$$),
    ('{"metadata.nothing": {"exists": true}}', $$false$$),
    ('{"metadata.nothing": {"not": 1}}', $$true$$),
    ('{"metadata.team": {"exists": true, "not": ["core", "search"]}, "language": {"not": "go"}, "not": {"uri": "src/**"}}',
     $$metadata ? 'team' AND coalesce(metadata -> 'team' NOT IN ('"core"', '"search"'), true) AND language IS DISTINCT FROM 'go' AND uri NOT LIKE 'src/%'$$);

-- Each mode finds exactly these, with and without the indexes.
CREATE FUNCTION pg_temp.wrong() RETURNS TABLE (filter jsonb, mode text, exact boolean, missing bigint, superfluous bigint, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    m record; wanted bigint[]; found bigint[];
BEGIN
    FOR m IN SELECT t.filter, t.meaning, v.mode, v.exact FROM meanings t, (VALUES ('dense', false), ('dense', true), ('bm25', false), ('hybrid', false)) v (mode, exact) LOOP
        EXECUTE 'SELECT coalesce(array_agg(id ORDER BY id), ''{}'') FROM (SELECT c.id, c.language, c.role, c.speaker, c.page_start, c.page_end, c.line_start, c.symbol_kind,
            d.uri, d.path, d.project, d.commit, d.published_at, d.metadata FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id
            WHERE c.collection_id = (SELECT id FROM rag.collection WHERE name = ''filtered'')) p WHERE ' || m.meaning INTO wanted;
        SELECT coalesce(array_agg(s.chunk_id ORDER BY s.chunk_id), '{}') INTO found
          FROM rag.search('a stone', 100, m.filter, 'filtered', m.mode, settings => jsonb_build_object('exact', m.exact)) s;
        IF wanted <> found THEN
            RETURN QUERY SELECT m.filter, m.mode, m.exact, (SELECT count(*) FROM unnest(wanted) w WHERE w <> ALL (found)), (SELECT count(*) FROM unnest(found) f WHERE f <> ALL (wanted)), cardinality(wanted)::bigint;
        END IF;
    END LOOP;
END $$;
SELECT * FROM pg_temp.wrong();
-- Few of them are all or nothing, so the list above says something.
SELECT count(*) > 60 AS many, count(*) FILTER (WHERE meaning IN ('true', 'false')) < 12 AS few FROM meanings;

-- A value is never SQL.
SELECT count(*) FROM rag.search('stone', 100, '{"language": {"prefix": "'' OR true --"}}', 'filtered', 'bm25');
SELECT count(*) FROM rag.search('stone', 100, '{"metadata.votes'' OR true --": {"gte": 0}}', 'filtered', 'bm25');
SELECT count(*) FROM rag.search('stone', 100, '{"metadata.votes": {"gte": 1e400}}', 'filtered', 'bm25');

-- Mistakes.
SELECT count(*) FROM rag.search('stone', 100, '{"languag": "rust"}', 'filtered');
SELECT count(*) FROM rag.search('stone', 100, '{"language": {"no": "rust"}}', 'filtered');
SELECT count(*) FROM rag.search('stone', 100, '{"language": {"gte": "rust"}}', 'filtered');
SELECT count(*) FROM rag.search('stone', 100, '{"page": {"prefix": "1"}}', 'filtered');
SELECT count(*) FROM rag.search('stone', 100, '{"role": {"exists": "yes"}}', 'filtered');
SELECT count(*) FROM rag.search('stone', 100, '{"metadata.votes": {"gte": 1, "lt": "a"}}', 'filtered');
SELECT count(*) FROM rag.search('stone', 100, '{"not": {"languag": "rust"}}', 'filtered');
SELECT count(*) FROM rag.search('stone', 100, '{"not": {}}', 'filtered');
SELECT count(*) FROM rag.search('stone', 100, '{"source": {"not": "elsewhere"}}', 'filtered', 'bm25');

SELECT rag.drop_source('inline/filtered');
SELECT rag.drop_collection('filtered');
