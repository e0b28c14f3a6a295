-- SPDX-License-Identifier: PostgreSQL
-- Text travels as UTF-8 between server, engine and files; in another encoding it would be stored as what it is not.
DO $$
DECLARE
    found text := (SELECT pg_catalog.pg_encoding_to_char(d.encoding) FROM pg_catalog.pg_database d
                    WHERE d.datname = pg_catalog.current_database());
BEGIN
    IF found <> 'UTF8' THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = pg_catalog.format('database "%s" has encoding "%s", and pg_rag needs UTF8', pg_catalog.current_database(), found),
            HINT = 'CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0;';
    END IF;
END
$$;

CREATE SCHEMA rag;
COMMENT ON SCHEMA rag IS 'pg_rag: documents, chunks, search and evidence';
