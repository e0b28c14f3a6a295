-- SPDX-License-Identifier: PostgreSQL
-- Row-level security. What has no label is visible to whoever may read the table; what has one only to roles that rag.acl
-- gives the label, and to members of such roles. The owner of the tables and superusers see everything. Policies of member
-- tables are not dumped, so they must be the extension's own and take what varies from a table that is.
-- The subquery that finds the caller's labels refers to no row of the table, so it runs once per statement.

ALTER TABLE rag.acl ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.source ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.document ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.chunk ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.chunk_embedding ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.sync ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.sync_item ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.job_failure ENABLE ROW LEVEL SECURITY;

-- Nobody adds to what he may not see.
-- A role that was dropped is in nobody's way.
CREATE POLICY own ON rag.acl FOR SELECT USING (
    EXISTS (SELECT FROM pg_catalog.pg_roles r
             WHERE r.rolname OPERATOR(pg_catalog.=) acl.role AND pg_catalog.pg_has_role(r.oid, 'USAGE')));
CREATE POLICY labelled ON rag.source USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)));
CREATE POLICY labelled ON rag.document USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
    WITH CHECK ((acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
        AND EXISTS (SELECT FROM rag.source p WHERE p.id OPERATOR(pg_catalog.=) document.source_id));
CREATE POLICY labelled ON rag.chunk USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
    WITH CHECK ((acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
        AND EXISTS (SELECT FROM rag.document p WHERE p.id OPERATOR(pg_catalog.=) chunk.document_id));
CREATE POLICY labelled ON rag.chunk_embedding USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
    WITH CHECK ((acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
        AND EXISTS (SELECT FROM rag.chunk p WHERE p.id OPERATOR(pg_catalog.=) chunk_embedding.chunk_id));
CREATE POLICY of_source ON rag.sync USING (
    EXISTS (SELECT FROM rag.source s WHERE s.id OPERATOR(pg_catalog.=) source_id));
CREATE POLICY of_sync ON rag.sync_item USING (
    EXISTS (SELECT FROM rag.sync y WHERE y.id OPERATOR(pg_catalog.=) sync_id));
-- A job runs with the rights of the role it names, so nobody may name another.
CREATE POLICY of_source ON rag.job USING (
    EXISTS (SELECT FROM rag.source s WHERE s.id OPERATOR(pg_catalog.=) source_id))
    WITH CHECK (requested_by OPERATOR(pg_catalog.=) current_user
                AND EXISTS (SELECT FROM rag.source s WHERE s.id OPERATOR(pg_catalog.=) source_id));
CREATE POLICY of_job ON rag.job_failure USING (
    EXISTS (SELECT FROM rag.job j WHERE j.id OPERATOR(pg_catalog.=) job_id));
COMMENT ON POLICY own ON rag.acl IS 'a role sees its own labels';
COMMENT ON POLICY labelled ON rag.source IS 'no label, or one of the caller''s';
COMMENT ON POLICY labelled ON rag.document IS 'no label, or one of the caller''s';
COMMENT ON POLICY labelled ON rag.chunk IS 'no label, or one of the caller''s';
COMMENT ON POLICY labelled ON rag.chunk_embedding IS 'no label, or one of the caller''s';
COMMENT ON POLICY of_source ON rag.sync IS 'runs over visible sources';
COMMENT ON POLICY of_sync ON rag.sync_item IS 'items of visible runs';
COMMENT ON POLICY of_source ON rag.job IS 'jobs of visible sources';
COMMENT ON POLICY of_job ON rag.job_failure IS 'failures of visible jobs';
