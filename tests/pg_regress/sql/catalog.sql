-- What an administrator's tools say of the extension.

-- Every object has a comment: relations, columns, functions, triggers, policies and the schema.
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind IN ('r', 'v', 'i', 'S')
   AND obj_description(c.oid, 'pg_class') IS NULL;
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
   AND col_description(c.oid, a.attnum) IS NULL;
SELECT p.oid::regprocedure FROM pg_proc p
 WHERE p.pronamespace = 'rag'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL;
SELECT t.tgrelid::regclass, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace = 'rag'::regnamespace AND NOT t.tgisinternal AND obj_description(t.oid, 'pg_trigger') IS NULL;
SELECT p.polrelid::regclass, p.polname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
 WHERE c.relnamespace = 'rag'::regnamespace AND obj_description(p.oid, 'pg_policy') IS NULL;
SELECT obj_description('rag'::regnamespace, 'pg_namespace') IS NOT NULL AS schema_has_comment;

-- Nothing is granted to PUBLIC.
SELECT p.oid::regprocedure FROM pg_proc p
 WHERE p.pronamespace = 'rag'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE');
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind IN ('r', 'v')
   AND has_table_privilege('public', c.oid, 'SELECT');

-- A dump carries every table and every identity sequence, but for the BM25 index, which a restore writes anew.
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind IN ('r', 'S')
   AND c.relname NOT LIKE 'lex\_%'
   AND NOT c.oid = ANY (SELECT unnest(extconfig) FROM pg_extension WHERE extname = 'pg_rag');

-- Volatility and parallel safety are said, not left to the default.
SELECT p.proname, p.provolatile, p.proparallel, pg_get_function_identity_arguments(p.oid) AS arguments
  FROM pg_proc p WHERE p.pronamespace = 'rag'::regnamespace ORDER BY 1, 4;

-- The settings, with units and bounds.
LOAD 'pg_rag';
SELECT name, context, vartype, unit, min_val, max_val FROM pg_settings WHERE name LIKE 'pg_rag.%' ORDER BY name;
SET pg_rag.no_such_setting = 1;
