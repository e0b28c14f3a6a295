-- Terms: rag.terms, and what a name is found by.
\pset format unaligned
\pset tuples_only on
-- Lexemes stand where the configuration sees them; the rest behind the text, at every second position.
SELECT rag.terms('The quick brown foxes');
SELECT rag.terms('see HybridRetriever here');
SELECT rag.terms('rrf_k of rrf_k');
SELECT rag.terms('std::io::Read');
SELECT rag.terms('v0.8.6');
SELECT rag.terms('ERR_CONN_RESET');
SELECT rag.terms('C++ and C#');
SELECT rag.terms('CVE-2024-1234');
SELECT rag.terms('src/store/sync.rs');
SELECT rag.terms('検索エンジン');
SELECT rag.terms('ＨＴＴＰＳｅｒｖｅｒ ﬁle', 'simple');
SELECT rag.terms('Wörterbücher der Häuser', 'german');
SELECT rag.terms(E'it''s a\\b'), rag.terms(''), rag.terms(NULL) IS NULL;
SELECT rag.terms('Ann: the ships', emphasis => 'Ann');
SELECT rag.terms('x', 'englisch');
SELECT rag.terms('x', NULL);

-- What the parser would take for a tag, an entity, a path or a sign hides no word, and what stands before a name changes none of its terms.
SELECT w AS hidden FROM (VALUES ('Vec<String>', 'String'), ('Option<HybridRetriever>', 'HybridRetriever'), ('x<rrf_k>', 'rrf_k'), ('<std::io::Read>', 'std::io::Read'),
       ('if (i <limit && j> 0) harbour', 'limit'), ('x = &config;', 'config'), ('/rrf_k', 'rrf_k'), ('run /quay', 'quay'), ('./harbour', 'harbour'),
       ('see /usr/local/bin here', 'usr/local/bin'), ('./src/store/sync.rs', 'src/store/sync.rs'), ('-1234 +49', '1234'), ('harbour' || chr(8203) || 'fee', 'harbour'),
       ('fee' || chr(8206), 'fee')) v (t, w) WHERE NOT (SELECT array_agg(u.lexeme) FROM unnest(rag.terms(t)) u) @> (SELECT array_agg(u.lexeme) FROM unnest(rag.terms(w)) u);
SELECT p || w AS changed FROM unnest('{HybridRetriever,rrf_k,std::io::Read,v0.8.6,ERR_CONN_RESET,CVE-2024-1234,harbour}'::text[]) w, unnest('{/,./,~/,</,<,&,(,//}'::text[]) p
 WHERE NOT (SELECT array_agg(u.lexeme) FROM unnest(rag.terms(p || w || ' .')) u) @> (SELECT array_agg(u.lexeme) FROM unnest(rag.terms(w)) u);

-- Whole and by its parts, in text and in titles, and in either case.
SELECT rag.create_collection('names') > 0 AS made;
SELECT count(*) FROM (VALUES ('hybrid', 'The class HybridRetriever joins two legs.'), ('rrf', 'The smoothing constant is `rrf_k`, sixty.'),
       ('std', 'Whoever reads implements std::io::Read for it.'), ('version', 'It came with v0.8.6 at last.'),
       ('reset', 'net::ERR_CONN_RESET is what the browser says.'), ('cpp', 'A C++ program.'), ('cve', 'Fixed: CVE-2024-1234 (overflow).'),
       ('ja', '全文検索エンジンを使う。'), ('ko', '전문검색을 사용한다.'), ('path', 'The file src/store/sync.rs has it.'),
       ('other', 'Nothing of all this is here, only prose.')) AS v (uri, content),
       LATERAL rag.ingest(v.content, v.uri, collection => 'names') i;
CREATE FUNCTION pg_temp.found(query text) RETURNS text LANGUAGE sql AS $$
    SELECT query || ': ' || coalesce(string_agg(s.uri, ' ' ORDER BY s.rank), '-') FROM rag.search(query, 5, collection => 'names', mode => 'bm25') s $$;
SELECT pg_temp.found(q) FROM unnest(ARRAY['HybridRetriever', 'hybridretriever', 'hybrid', 'retrievers', 'rrf_k', 'RRF_K', 'rrf', 'k',
       'std::io::Read', 'std::io::read', 'std', 'io', 'read', 'v0.8.6', '0.8.6', 'v0', 'ERR_CONN_RESET', 'err_conn_reset', 'conn', 'reset',
       'C++', 'c++', 'c', 'CVE-2024-1234', 'cve-2024-1234', 'cve', '2024', '1234', '検索', '検索エンジン', 'エンジン', '검색', '전문검색',
       'src/store/sync.rs', 'sync.rs', 'store', 'C#', 'rrf_j']) q;

-- A vector with its length: the positions of all terms.
SELECT count(*) FROM rag.chunk c WHERE c.dl <> (SELECT sum(cardinality(u.positions)) FROM unnest(c.tsv) u);
SELECT count(*) FROM rag.chunk c JOIN rag.collection k ON k.id = c.collection_id AND k.name = 'names' WHERE c.tsv <> rag.terms(c.content);
-- Phrases are phrases.
SELECT d.uri FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE c.tsv @@ phraseto_tsquery('english', 'smoothing constant');
SELECT count(*) FROM rag.chunk c WHERE c.tsv @@ 'leg <-> hybrid' OR c.tsv @@ 'hybrid <-> retriev' OR c.tsv @@ 'constant <-> smooth';

-- The chunks of a document come in one segment, and so does what a new version has of them.
CREATE FUNCTION pg_temp.segments() RETURNS text LANGUAGE sql AS $$
    SELECT segments || ' segments, ' || documents || ' documents' FROM rag.lexical_status WHERE collection = 'names' AND unit = 'chunk' $$;
SELECT rag.compact('names') > 0 AS merged;
SELECT pg_temp.segments();
SELECT chunks FROM rag.ingest((SELECT string_agg('Paragraph ' || g || ' ' || repeat('speaks of ships and of harbours ', 4), E'\n\n' ORDER BY g) FROM generate_series(1, 40) g),
                              'long', collection => 'names', options => '{"chunk_tokens": 32}');
SELECT pg_temp.segments();
CREATE TEMP TABLE before AS SELECT c.id, c.chunk_key, c.xmin::text AS version, c.entry, c.ordinal FROM rag.chunk c
    JOIN rag.document d ON d.id = c.document_id AND d.uri = 'long';
-- A paragraph more at the beginning: the others keep their rows, terms and entries, and move.
SELECT chunks FROM rag.ingest((SELECT string_agg('Paragraph ' || g || ' ' || repeat('speaks of ships and of harbours ', 4), E'\n\n' ORDER BY g) FROM generate_series(0, 40) g),
                              'long', collection => 'names', options => '{"chunk_tokens": 32}');
SELECT count(*) AS kept, bool_and(c.id = b.id AND c.entry = b.entry) AS same, bool_and(c.ordinal = b.ordinal + 1) AS moved
  FROM before b JOIN rag.chunk c USING (chunk_key);
SELECT count(*) - 40 AS new FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id AND d.uri = 'long';
SELECT pg_temp.segments();
-- And as it is: no row is touched.
UPDATE before b SET version = c.xmin::text FROM rag.chunk c WHERE c.id = b.id;
SELECT chunks FROM rag.ingest((SELECT string_agg('Paragraph ' || g || ' ' || repeat('speaks of ships and of harbours ', 4), E'\n\n' ORDER BY g) FROM generate_series(0, 40) g),
                              'long', collection => 'names', options => '{"chunk_tokens": 32}');
SELECT count(*) AS touched FROM before b JOIN rag.chunk c USING (id) WHERE c.xmin::text <> b.version;

-- A chunk is indexed however large and odd it is.
SELECT chunks FROM rag.ingest((SELECT string_agg('word' || g || 'x', ' ') FROM generate_series(1, 150000) g), 'huge', collection => 'names',
                              options => '{"chunking": "none", "truncate": true}');
-- PostgreSQL's parser reads to the end of a name for each underscore in it.
SET statement_timeout = '20s';
SELECT rag.terms(repeat('ab_', 20000) || ' ' || repeat('a_1', 20000), 'simple') IS NOT NULL AS linear;
RESET statement_timeout;
SELECT chunks FROM rag.ingest('begin ' || repeat('x', 5000) || ' ' || repeat('ship ', 20000) || 'a_' || repeat('b/', 3000), 'odd', collection => 'names',
                              options => '{"chunking": "none", "truncate": true}');
SELECT d.uri, length(c.tsv) > 30000 AS many, pg_column_size(c.tsv) < 1048576 AS fits, (SELECT max(cardinality(u.positions)) FROM unnest(c.tsv) u)
  FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE d.uri IN ('huge', 'odd') ORDER BY 1;
SELECT pg_temp.found('word77x');
SELECT pg_temp.found('begin');
SELECT rag.drop_source('inline/names');
SELECT rag.drop_collection('names');
