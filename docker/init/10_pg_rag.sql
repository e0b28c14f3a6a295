-- SPDX-License-Identifier: PostgreSQL
-- Runs once, when the database is made.
CREATE EXTENSION pg_rag CASCADE;
ALTER SYSTEM SET pg_rag.allowed_paths = '/srv/documents';
