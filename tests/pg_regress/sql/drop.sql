-- DROP EXTENSION leaves nothing
DROP EXTENSION pg_rag;
SELECT count(*) FROM pg_namespace WHERE nspname = 'rag';
CREATE EXTENSION pg_rag;
SELECT count(*) FROM rag.source;
