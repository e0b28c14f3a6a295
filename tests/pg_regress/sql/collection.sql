-- rag.create_collection, rag.drop_collection
\set VERBOSITY default
SELECT rag.create_collection('pets') >= 100 AS made;
SELECT rag.create_collection('small', model => 'all-MiniLM-L6-v2-int8') >= 100 AS made;
SELECT c.name, m.name AS model FROM rag.collection c JOIN rag.model m ON m.id = c.model_id ORDER BY 1;
-- each has an HNSW index of its own
SELECT count(*) FROM pg_indexes WHERE schemaname = 'rag' AND indexdef LIKE '%hnsw%';
SELECT repair_needed FROM rag.health();
SELECT rag.create_collection('pets');
SELECT rag.create_collection('');
SELECT rag.create_collection(' pets');
SELECT rag.create_collection('x', model => 'all-MiniLM-L6');
SELECT rag.drop_collection('small');
SELECT rag.drop_collection('smal');
SELECT rag.drop_collection('default');
SELECT count(*) FROM pg_indexes WHERE schemaname = 'rag' AND indexdef LIKE '%hnsw%';
-- a collection with sources stays
SELECT rag.add_source('pets source', 'text', '/nowhere', collection => 'pets') > 0 AS added;
SELECT rag.drop_collection('pets');
SELECT rag.drop_source('pets source');
SELECT rag.drop_collection('pets');
