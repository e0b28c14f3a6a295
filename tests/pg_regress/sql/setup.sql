-- A fresh database: the extension, and a folder of the tests' own files that the server may read.
CREATE EXTENSION pg_rag CASCADE;
-- Scores and vectors are compared rounded: another processor adds in another order.
CREATE FUNCTION public.fixtures() RETURNS text LANGUAGE sql
    AS $$ SELECT pg_catalog.split_part(pg_catalog.current_setting('pg_rag.allowed_paths'), ',', 1) $$;
SELECT name, kind, location FROM rag.sources;
SELECT name, dimensions, max_tokens, pooling, normalize FROM rag.model ORDER BY name;
SELECT name, settings FROM rag.profile ORDER BY name;
