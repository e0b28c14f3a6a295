-- text_search_config auto: each document is read by the configuration of its language.
\pset format unaligned
SELECT public.fixtures() || '/languages' AS languages \gset
SELECT rag.create_collection('tongues') > 0 AS made;
SELECT rag.add_source('tongues', 'markdown', :'languages', '{"text_search_config": "auto"}', 'tongues') > 0 AS added;
SELECT rag.add_source('tongues code', 'code', :'languages' || '/code', '{"text_search_config": "auto"}', 'tongues') > 0 AS added;
CALL rag.sync('tongues');
CALL rag.sync('tongues code');
SELECT name, text_search_config FROM rag.sources WHERE collection = 'tongues' ORDER BY 1;
-- Found, said (Swedish, which it is not), too short to tell, and code, whatever its comments are written in.
SELECT uri, language, text_search_config FROM rag.documents WHERE collection = 'tongues' ORDER BY uri;
SELECT count(*) AS wrong FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id JOIN rag.collection k ON k.id = c.collection_id AND k.name = 'tongues'
 WHERE NOT c.tsv @@ (SELECT string_agg(quote_literal(u.lexeme), ' & ')::tsquery FROM unnest(rag.terms(c.content, d.text_search_config)) u);

-- A query is read by those that documents were read by: each finds its own language's forms.
CREATE FUNCTION pg_temp.found(query text) RETURNS text LANGUAGE sql AS $$
    SELECT query || ': ' || coalesce(string_agg(s.uri, ' ' ORDER BY s.rank), '-') FROM rag.search(query, 5, collection => 'tongues', mode => 'bm25') s $$;
SELECT pg_temp.found(q) FROM unnest(ARRAY['Haus', 'Boot', 'maison', 'pêcheur', 'island', 'fisherman', '漁師', 'returning_ships', 'tides', 'Häuser']) q;

-- Configurations of documents count, whatever else there is.
BEGIN;
INSERT INTO rag.document (source_id, uri, media_type, content_sha256, options_sha256, parser_version, text_search_config)
SELECT s.id, 'n' || i, 'text/plain', sha256('x'), sha256('x'), '0', 'pg_catalog.' || (ARRAY['danish', 'german'])[1 + i % 2]
  FROM rag.source s, generate_series(1, 5000) i WHERE s.name = 'tongues';
SELECT pg_temp.found('island');
ROLLBACK;

-- Another configuration for all, and back: until documents are read again, both count.
SELECT rag.alter_source('tongues', options => '{"text_search_config": "simple"}');
SELECT pg_temp.found('Haus');
CALL rag.sync('tongues');
SELECT pg_temp.found('Haus');
SELECT DISTINCT text_search_config FROM rag.documents WHERE source = 'tongues';
SELECT rag.alter_source('tongues', options => '{"text_search_config": "auto"}');
SELECT pg_temp.found('Häuser');
CALL rag.sync('tongues');
SELECT pg_temp.found('Haus');

-- One that is called auto is named with its schema; one that was dropped is told.
CREATE TEXT SEARCH CONFIGURATION public.auto (COPY = simple);
SELECT rag.alter_source('tongues code', options => '{"text_search_config": "public.auto"}');
CALL rag.sync('tongues code');
SELECT DISTINCT text_search_config FROM rag.documents WHERE source = 'tongues code';
DROP TEXT SEARCH CONFIGURATION public.auto;
SELECT pg_temp.found('island');
SELECT rag.terms('x', 'auto');
SELECT rag.drop_source('tongues');
SELECT rag.drop_source('tongues code');
SELECT rag.compact('tongues') > 0 AS merged;
SELECT rag.drop_collection('tongues');
