-- SPDX-License-Identifier: PostgreSQL
CREATE SCHEMA rag;
COMMENT ON SCHEMA rag IS 'pg_rag: documents, chunks, search and evidence';
