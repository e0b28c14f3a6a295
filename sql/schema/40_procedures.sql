-- SPDX-License-Identifier: PostgreSQL
-- rag.sync must commit between batches, which only a procedure without SET clause, SECURITY DEFINER or an enclosing
-- EXCEPTION block can do. So the loop is plpgsql and each step is one Rust function in a transaction of its own; the
-- EXCEPTION block spans a step, never a COMMIT.

CREATE PROCEDURE rag.sync(source text)
LANGUAGE plpgsql
AS $procedure$
DECLARE
    run bigint;
    listed boolean := false;
    more boolean := true;
    code text;
    message text;
    detail text;
    hint text;
BEGIN
    run := rag.sync_begin(source);
    COMMIT;
    WHILE more LOOP
        BEGIN
            IF listed THEN
                more := rag.sync_batch(run);
            ELSE
                PERFORM rag.sync_list(run);
                listed := true;
            END IF;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                hint = PG_EXCEPTION_HINT;
        END;
        IF code IS NOT NULL THEN
            PERFORM rag.sync_fail(run, message);
            COMMIT;
            -- RAISE prints an empty DETAIL or HINT as an empty line.
            IF detail OPERATOR(pg_catalog.=) '' THEN
                detail := 'What the sync stored before stays stored.';
            END IF;
            IF hint OPERATOR(pg_catalog.=) '' THEN
                hint := 'SELECT * FROM rag.status; shows the latest run of each source.';
            END IF;
            RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = detail, HINT = hint;
        END IF;
        COMMIT;
    END LOOP;
END
$procedure$;
COMMENT ON PROCEDURE rag.sync(text) IS
    'reads a source and brings its documents up to date, committing after each batch; call it outside of a transaction block';
