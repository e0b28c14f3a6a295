// SPDX-License-Identifier: PostgreSQL

//! Tables `rag.sync` and `rag.sync_item`: runs over a source and the manifest of each source's latest run.

use crate::spi;
use rag_core::source::{Failure, Item, Seen};
use rag_core::{Error, Kind, Result};

/// A run that is under way.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Key.
    pub id: i64,
    /// Its source.
    pub source_id: i64,
}

/// Counts of a finished run.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Documents added.
    pub new: i32,
    /// Documents replaced.
    pub modified: i32,
    /// Documents left alone.
    pub unchanged: i32,
    /// Documents deleted.
    pub deleted: i32,
    /// Documents that failed.
    pub failed: i32,
}

/// An item that still has to be read.
#[derive(Debug)]
pub struct Pending {
    /// Its place in the manifest.
    pub ordinal: i64,
    /// The item.
    pub item: Item,
}

/// Starts a run, after ending one that its backend left behind; the source must be locked.
///
/// Fails when another backend is at work on the source.
pub fn start(source_id: i64, source_name: &str, parser_version: &str) -> Result<Run> {
    if let Some(pid) = at_work(source_id)? {
        return Err(busy(source_name, pid));
    }
    spi::execute(
        "UPDATE rag.sync SET status = 'interrupted', finished = pg_catalog.clock_timestamp()
          WHERE source_id = $1 AND status = 'running'",
        &[source_id.into()],
    )?;
    let sql = "INSERT INTO rag.sync (source_id, parser_version) VALUES ($1, $2) RETURNING id";
    let id = spi::write(sql, &[source_id.into(), parser_version.into()], |row| row.get(1))?.pop();
    Ok(Run { id: id.ok_or_else(|| Error::internal("no sync was inserted"))?, source_id })
}

/// The other backend that is running a sync over a source right now.
///
/// A backend that is in no transaction, or is this one, is not in the middle of a batch. Transactions show in pg_locks, which
/// everybody may see, unlike the state of another role's session.
pub fn at_work(source_id: i64) -> Result<Option<i32>> {
    let sql = "SELECT y.backend_pid FROM rag.sync y JOIN pg_catalog.pg_stat_activity a ON a.pid = y.backend_pid
                WHERE y.source_id = $1 AND y.status = 'running' AND a.pid <> pg_catalog.pg_backend_pid()
                  AND coalesce(a.backend_start <= y.started, true)
                  AND EXISTS (SELECT FROM pg_catalog.pg_locks l WHERE l.pid = a.pid AND l.locktype = 'virtualxid')";
    spi::select_one(sql, &[source_id.into()], |row| row.get(1))
}

/// The error for a source that another backend is syncing.
pub fn busy(source_name: &str, pid: i32) -> Error {
    Error::new(Kind::InUse, format!("source \"{source_name}\" is being synced by process {pid}"))
        .with_hint(format!("Wait for it, or stop it: SELECT pg_cancel_backend({pid});"))
}

/// The run of a key, locked; fails when it is not running any more.
pub fn running(id: i64) -> Result<Run> {
    let sql = "SELECT source_id FROM rag.sync WHERE id = $1 AND status = 'running' FOR UPDATE";
    match spi::write(sql, &[id.into()], |row| row.get(1))?.pop() {
        Some(source_id) => Ok(Run { id, source_id }),
        None => Err(Error::new(Kind::InUse, format!("sync {id} is not running"))
            .with_detail("It was ended, or another session took over the source.")),
    }
}

/// Records that the whole source is in the manifest, how many entries were looked at for it, and what needs no reading.
pub fn listed(run: Run, seen: i64, total: i64) -> Result<()> {
    let sql = "UPDATE rag.sync y SET seen = $3, total = $2, unchanged = i.unchanged, failed = i.failed
                 FROM (SELECT pg_catalog.count(*) FILTER (WHERE state = 'unchanged') AS unchanged,
                              pg_catalog.count(*) FILTER (WHERE state = 'failed') AS failed
                         FROM rag.sync_item WHERE sync_id = $1) i WHERE y.id = $1";
    spi::execute(sql, &[run.id.into(), total.into(), seen.into()]).map(|_| ())
}

/// Whether the whole source is in the manifest.
pub fn is_listed(run: Run) -> Result<bool> {
    Ok(spi::select_one("SELECT total IS NOT NULL FROM rag.sync WHERE id = $1", &[run.id.into()], |row| row.get(1))?
        .unwrap_or(false))
}

/// Records a page of a listing. An item whose document is the same, made with the same options and label, needs
/// nothing more.
pub fn add_items(run: Run, first: i64, items: &[Item], options_sha256: &[u8], acl: Option<&str>) -> Result<()> {
    let place = |item: &Item| {
        serde_json::to_string(&item.place).map_err(|e| Error::internal(format!("could not write a place: {e}")))
    };
    let args = [
        run.id.into(),
        first.into(),
        items.iter().map(|i| i.uri.clone()).collect::<Vec<String>>().into(),
        items.iter().map(|i| i.content_sha256.0.to_vec()).collect::<Vec<Vec<u8>>>().into(),
        items.iter().map(|i| i.size as i64).collect::<Vec<i64>>().into(),
        items.iter().map(place).collect::<Result<Vec<String>>>()?.into(),
        run.source_id.into(),
        options_sha256.to_vec().into(),
        acl.map(str::to_owned).into(),
    ];
    let sql = "INSERT INTO rag.sync_item (sync_id, ordinal, uri, content_sha256, size, place, state)
               SELECT $1, $2 + i.n, i.uri, i.content_sha256, i.size, i.place::jsonb,
                      CASE WHEN d.content_sha256 = i.content_sha256 AND d.options_sha256 = $8
                            AND d.acl IS NOT DISTINCT FROM $9 THEN 'unchanged'
                           ELSE 'pending' END
                 FROM ROWS FROM (unnest($3::text[]), unnest($4::bytea[]), unnest($5::bigint[]), unnest($6::text[]))
                      WITH ORDINALITY AS i (uri, content_sha256, size, place, n)
                 LEFT JOIN rag.document d ON d.source_id = $7 AND d.uri = i.uri AND d.current";
    spi::execute(sql, &args).map(|_| ())
}

/// The manifest of the source's last run before this one that was listed to its end, if it has items of the feed at
/// `location`.
const BEFORE: &str = "SELECT pg_catalog.max(y.id) FROM rag.sync y
                       WHERE y.source_id = $1 AND y.total IS NOT NULL AND y.status <> 'running'
                         AND EXISTS (SELECT FROM rag.sync_item e
                                      WHERE e.sync_id = y.id AND e.place #>> '{Entry,feed}' = $2)";

/// With what the feed of a source was served when it was listed last, for asking whether it changed.
pub fn feed_seen(source_id: i64, location: &str) -> Result<Option<Seen>> {
    let sql = format!(
        "SELECT i.place #>> '{{Entry,etag}}', i.place #>> '{{Entry,last_modified}}' FROM rag.sync_item i
          WHERE i.sync_id = ({BEFORE}) AND i.place #>> '{{Entry,feed}}' = $2 ORDER BY i.ordinal LIMIT 1"
    );
    let seen = spi::select_one(&sql, &[source_id.into(), location.into()], |row| {
        Ok(Seen { etag: row.optional(1)?, last_modified: row.optional(2)?, ..Seen::default() })
    })?;
    Ok(seen.filter(|seen| seen.etag.is_some() || seen.last_modified.is_some()))
}

/// Records once more what the feed of a source held when it was listed last, because it did not change since. What failed
/// then, or was not come to, or was read with other options, is pending. Returns how many.
pub fn add_items_again(run: Run, location: &str, options_sha256: &[u8], acl: Option<&str>) -> Result<i64> {
    let sql = format!(
        "INSERT INTO rag.sync_item (sync_id, ordinal, uri, content_sha256, size, place, state, error)
         SELECT $3, i.ordinal, i.uri, i.content_sha256, i.size, i.place,
                CASE WHEN i.place IS NULL THEN 'failed'
                     WHEN d.content_sha256 = i.content_sha256 AND d.options_sha256 = $4
                      AND d.acl IS NOT DISTINCT FROM $5 THEN 'unchanged'
                     ELSE 'pending' END,
                CASE WHEN i.place IS NULL THEN i.error END
           FROM rag.sync_item i
           LEFT JOIN rag.document d ON d.source_id = $1 AND d.uri = i.uri AND d.current
          WHERE i.sync_id = ({BEFORE}) AND (i.place IS NULL OR i.place #>> '{{Entry,feed}}' = $2)"
    );
    let args = [
        run.source_id.into(),
        location.into(),
        run.id.into(),
        options_sha256.to_vec().into(),
        acl.map(str::to_owned).into(),
    ];
    spi::execute(&sql, &args).map(|count| count as i64)
}

/// Records documents that could not be listed.
pub fn add_failures(run: Run, first: i64, failures: &[Failure]) -> Result<()> {
    let args = [
        run.id.into(),
        first.into(),
        failures.iter().map(|f| f.uri.clone()).collect::<Vec<String>>().into(),
        failures.iter().map(|f| f.error.message.clone()).collect::<Vec<String>>().into(),
    ];
    let sql = "INSERT INTO rag.sync_item (sync_id, ordinal, uri, state, error)
               SELECT $1, $2 + i.n, i.uri, 'failed', i.error
                 FROM ROWS FROM (unnest($3::text[]), unnest($4::text[])) WITH ORDINALITY AS i (uri, error, n)";
    spi::execute(sql, &args).map(|_| ())
}

/// The next items to read: at most `count`, and at most `bytes` unless one item alone is larger.
pub fn pending(run: Run, count: i32, bytes: i64) -> Result<Vec<Pending>> {
    let sql = "SELECT i.ordinal, i.uri, i.content_sha256, i.size, i.place::text FROM (
                 SELECT *, sum(size) OVER (ORDER BY ordinal) AS total FROM (
                   SELECT * FROM rag.sync_item WHERE sync_id = $1 AND state = 'pending' ORDER BY ordinal LIMIT $2) p) i
                WHERE i.total <= $3 OR i.total = i.size ORDER BY i.ordinal";
    spi::select(sql, &[run.id.into(), count.into(), bytes.into()], |row| {
        let sha: Vec<u8> = row.get(3)?;
        let place: String = row.get(5)?;
        Ok(Pending {
            ordinal: row.get(1)?,
            item: Item {
                uri: row.get(2)?,
                content_sha256: rag_core::provenance::ContentHash(
                    sha.try_into().map_err(|_| Error::internal("a hash is not 32 bytes"))?,
                ),
                size: row.get::<i64>(4)?.unsigned_abs(),
                place: serde_json::from_str(&place)
                    .map_err(|e| Error::internal(format!("could not read a place: {e}")))?,
            },
        })
    })
}

/// Records what became of an item.
pub fn settle(run: Run, ordinal: i64, state: &str, error: Option<&str>) -> Result<()> {
    let sql = "UPDATE rag.sync_item SET state = $3, error = $4 WHERE sync_id = $1 AND ordinal = $2";
    let args = [run.id.into(), ordinal.into(), state.into(), error.map(str::to_owned).into()];
    spi::execute(sql, &args).map(|_| ())
}

/// How many items of a run are settled.
pub fn settled(id: i64) -> Result<i64> {
    let sql = "SELECT (new + modified + unchanged + failed)::bigint FROM rag.sync WHERE id = $1";
    Ok(spi::select_one(sql, &[id.into()], |row| row.get(1))?.unwrap_or(0))
}

/// Adds what a batch came to. Returns how many items are settled, of how many.
pub fn advance(run: Run, new: i32, modified: i32, unchanged: i32, failed: i32) -> Result<(i64, i64)> {
    let sql = "UPDATE rag.sync SET new = new + $2, modified = modified + $3, unchanged = unchanged + $4,
                      failed = failed + $5 WHERE id = $1
            RETURNING (new + modified + unchanged + failed)::bigint, total";
    let args = [run.id.into(), new.into(), modified.into(), unchanged.into(), failed.into()];
    let found = spi::write(sql, &args, |row| Ok((row.get(1)?, row.get(2)?)))?.pop();
    found.ok_or_else(|| Error::internal(format!("sync {} vanished", run.id)))
}

/// Ends a run well: says at which commit unchanged files were seen, deletes what vanished from the source, keeps only this
/// run's manifest, and counts.
///
/// What could not be listed has not vanished: nothing is deleted beneath a folder that failed (its URI ends in a
/// slash) or in an archive that failed, and nothing at all when a record failed before its key was known (its URI names a
/// line or a row). Nor has what a feed does not show any more: `feed` is the location of one, and its posts stay.
pub fn finish(run: Run, feed: Option<&str>) -> Result<Counts> {
    // The manifest of a first sync has no statistics, and a nested loop over it would take a square of the time. Nothing may be
    // deleted under this setting: what is done then for each table beneath would read all of it.
    let gone = spi::with_settings(&[(c"enable_nestloop", "off")], || {
        note_commits(run)?;
        vanished(run, feed)
    })?;
    let deleted = spi::execute("DELETE FROM rag.document WHERE id = ANY($1)", &[gone.into()])?;
    spi::execute(
        "DELETE FROM rag.sync_item WHERE sync_id = ANY(ARRAY(
                SELECT y.id FROM rag.sync y WHERE y.source_id = $1 AND y.id <> $2))",
        &[run.source_id.into(), run.id.into()],
    )?;
    count(run, deleted as i32)
}

/// Says at which commit unchanged files of a repository were seen.
fn note_commits(run: Run) -> Result<()> {
    spi::execute(
        "UPDATE rag.document d SET repository = s.location, commit = i.place #>> '{Blob,commit}',
                ref = i.place #>> '{Blob,reference}'
           FROM rag.sync_item i, rag.source s
          WHERE s.id = $1 AND d.source_id = $1 AND d.current AND i.sync_id = $2 AND i.uri = d.uri
            AND i.state = 'unchanged' AND i.place ? 'Blob'
            AND (d.repository, d.commit, d.ref)
                IS DISTINCT FROM (s.location, i.place #>> '{Blob,commit}', i.place #>> '{Blob,reference}')",
        &[run.source_id.into(), run.id.into()],
    )
    .map(|_| ())
}

/// Documents that are not in the manifest and have vanished from the source.
fn vanished(run: Run, feed: Option<&str>) -> Result<Vec<i64>> {
    spi::select(
        "SELECT d.id FROM rag.document d WHERE d.source_id = $1
            AND NOT EXISTS (SELECT FROM rag.sync_item i WHERE i.sync_id = $2 AND i.uri = d.uri)
            AND ($3::text IS NULL OR d.metadata ->> 'feed' IS DISTINCT FROM $3)
            AND NOT EXISTS (SELECT FROM rag.sync_item f
                             WHERE f.sync_id = $2 AND f.state = 'failed' AND f.content_sha256 IS NULL
                               AND (f.uri ~ '#[LR][0-9]+$' OR f.uri LIKE '%/' AND pg_catalog.starts_with(d.uri, f.uri)
                                    OR pg_catalog.starts_with(d.uri, f.uri || '!/')))",
        &[run.source_id.into(), run.id.into(), feed.map(str::to_owned).into()],
        |row| row.get(1),
    )
}

/// Ends a run with its counts, and those of its source.
fn count(run: Run, deleted: i32) -> Result<Counts> {
    let sql = "UPDATE rag.sync y SET status = 'done', finished = pg_catalog.clock_timestamp(), new = i.new,
                      modified = i.modified, unchanged = i.unchanged, failed = i.failed, deleted = $2,
                      documents = (SELECT pg_catalog.count(*) FROM rag.document d
                                    WHERE d.source_id = $3 AND d.current),
                      (chunks, symbols) = (SELECT pg_catalog.count(*),
                                                  pg_catalog.count(DISTINCT (k.document_id, k.symbol_kind, k.symbol))
                                                      FILTER (WHERE k.symbol IS NOT NULL)
                                             FROM rag.document d JOIN rag.chunk k ON k.document_id = d.id AND k.current
                                            WHERE d.source_id = $3)
                 FROM (SELECT pg_catalog.count(*) FILTER (WHERE state = 'new') AS new,
                              pg_catalog.count(*) FILTER (WHERE state = 'modified') AS modified,
                              pg_catalog.count(*) FILTER (WHERE state = 'unchanged') AS unchanged,
                              pg_catalog.count(*) FILTER (WHERE state = 'failed') AS failed
                         FROM rag.sync_item WHERE sync_id = $1) i
                WHERE y.id = $1
            RETURNING y.new, y.modified, y.unchanged, y.deleted, y.failed";
    let counts = spi::write(sql, &[run.id.into(), deleted.into(), run.source_id.into()], |row| {
        Ok(Counts {
            new: row.get(1)?,
            modified: row.get(2)?,
            unchanged: row.get(3)?,
            deleted: row.get(4)?,
            failed: row.get(5)?,
        })
    })?;
    counts.into_iter().next().ok_or_else(|| Error::internal(format!("sync {} vanished", run.id)))
}

/// Ends a run badly.
pub fn fail(id: i64, message: &str) -> Result<()> {
    let sql = "UPDATE rag.sync SET status = 'failed', finished = pg_catalog.clock_timestamp(), error = $2
                WHERE id = $1 AND status = 'running'";
    spi::execute(sql, &[id.into(), message.into()]).map(|_| ())
}
