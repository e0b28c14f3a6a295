// SPDX-License-Identifier: PostgreSQL

//! Things are killed at random moments while others work: who may notice, and what is left.

use postgres::Client;
use rag_server_tests::chaos::{Chance, is_full};
use rag_server_tests::process::{self, Process, wait_until};
use rag_server_tests::{Cluster, Failure, Mode, TestResult, with_cluster};
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PAGES: usize = 100;
const SEARCHERS: usize = 20;

/// Pages of which each has a word of its own and enough text to keep the engine busy.
fn write_pages(cluster: &Cluster) -> TestResult<String> {
    for page in 0..PAGES {
        let mut text = format!("# Page {page}\n");
        for part in 0..4 {
            let filler = "Water, stone and weather shape what stands in their way. ".repeat(12);
            text += &format!("\n## Part {part}\n\nOf topic{page} and side{part}. {filler}\n");
        }
        cluster.write(&format!("pages/{page:03}.md"), text)?;
    }
    Ok(cluster.files().join("pages").display().to_string())
}

/// A small collection of its own, whose answers no sync changes.
fn fill_stable(client: &mut Client) -> TestResult {
    client.batch_execute("SELECT rag.create_collection('stable')")?;
    for (uri, text) in [
        ("oak", "An oak is a tall tree."),
        ("bread", "Bread is baked of flour and water."),
        ("saturn", "Saturn is a planet with wide rings."),
    ] {
        client.execute("SELECT * FROM rag.ingest($1::text, $2, 'text', collection => 'stable')", &[&text, &uri])?;
    }
    Ok(())
}

const SEARCH: &str = "SELECT uri FROM rag.search('which planet has rings', 3, collection => 'stable') ORDER BY rank";

fn search(client: &mut Client) -> Result<Vec<String>, postgres::Error> {
    Ok(client.query(SEARCH, &[])?.iter().map(|row| row.get(0)).collect())
}

/// Counts open sockets of a process. Its files are PostgreSQL's, which keeps those of tables open.
fn sockets(pid: i32) -> usize {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|f| fs::read_link(f.path()).ok()).filter(|to| to.to_string_lossy().starts_with("socket:")).count()
}

fn engine_of(postmaster: i32) -> Option<Process> {
    // The engine's own children have other names.
    process::descendants(postmaster).into_iter().find(|p| p.name == "pg_rag_engine")
}

#[derive(Debug, Default)]
struct Seen {
    right: u32,
    failed: u32,
    wrong: Vec<String>,
}

/// Searches until told to stop; a failure must be the one that is promised.
fn searcher(client: &mut Client, expected: &[String], stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        match search(client) {
            Ok(found) if found == expected => seen.right += 1,
            Ok(found) => seen.wrong.push(format!("answered {found:?}")),
            Err(error) => match error.as_db_error() {
                Some(e) if ["08006", "55000"].contains(&e.code().code()) && e.hint().is_some() => seen.failed += 1,
                _ => seen.wrong.push(format!("{error:?}")),
            },
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    seen
}

#[test]
fn an_engine_killed_again_and_again_costs_no_session_and_no_document() -> TestResult {
    let kills = if is_full() { 200 } else { 25 };
    with_cluster(&["max_connections = 60"], |cluster| {
        let place = write_pages(cluster)?;
        let mut client = cluster.connect()?;
        fill_stable(&mut client)?;
        client.execute("SELECT rag.add_source('pages', 'markdown', $1)", &[&place])?;
        let expected = search(&mut client)?;
        assert_eq!(expected.first().map(String::as_str), Some("saturn"));
        let postmaster = cluster.postmaster()?;

        let mut syncer = cluster.connect()?;
        let mut searchers = (0..SEARCHERS).map(|_| cluster.connect()).collect::<TestResult<Vec<_>>>()?;
        for searcher in &mut searchers {
            assert_eq!(search(searcher)?, expected);
        }
        let backends = cluster.backends(&mut client)?;
        let open: Vec<usize> = backends.iter().map(|pid| sockets(*pid)).collect();

        let stop = AtomicBool::new(false);
        let (seen, synced) = std::thread::scope(|scope| -> TestResult<_> {
            let searching: Vec<_> =
                searchers.iter_mut().map(|client| scope.spawn(|| searcher(client, &expected, &stop))).collect();
            // Sync after sync, each of which reads and embeds everything in another way.
            let syncing = scope.spawn(|| -> Result<u32, postgres::Error> {
                let mut syncs = 0;
                loop {
                    syncer.batch_execute("CALL rag.sync('pages')")?;
                    syncs += 1;
                    if stop.load(Ordering::Relaxed) {
                        return Ok(syncs);
                    }
                    let options = format!("{{\"chunk_tokens\": {}}}", 200 - syncs % 100);
                    syncer.execute("SELECT rag.alter_source('pages', options => $1::text::jsonb)", &[&options])?;
                }
            });
            let mut chance = Chance::new(1);
            let mut killed = 0;
            while killed < kills {
                chance.sleep(50, 900);
                if let Some(engine) = engine_of(postmaster)
                    && process::signal(engine.pid, "KILL").is_ok()
                {
                    killed += 1;
                }
            }
            stop.store(true, Ordering::Relaxed);
            let synced = syncing.join().map_err(|_| Failure::new("the syncing session panicked"))?;
            let seen: Vec<Seen> = searching.into_iter().filter_map(|s| s.join().ok()).collect();
            Ok((seen, synced))
        })?;
        let syncs = synced?;
        assert_eq!(seen.len(), SEARCHERS);
        let wrong: Vec<&String> = seen.iter().flat_map(|s| &s.wrong).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        let (right, failed) = seen.iter().fold((0, 0), |(r, f), s| (r + s.right, f + s.failed));
        eprintln!("{kills} kills, {syncs} syncs: {right} searches answered, {failed} failed as promised");
        assert!(right > failed, "{right} searches answered, {failed} failed");
        // With so many kills, some hit a search twice; if none ever did, nothing would have been tested.
        assert!(failed > 0 || !is_full(), "no search met a dead engine");

        // Nobody was restarted, nothing was left open, nothing is missing.
        assert_eq!(cluster.backends(&mut client)?, backends);
        assert!(!cluster.log().contains("terminating any other active server processes"), "{}", cluster.log());
        for (pid, before) in backends.iter().zip(open) {
            let now = sockets(*pid);
            // The session that only looked on opens its connection to the engine at the end.
            assert!(now <= before + 1, "backend {pid} has {now} open sockets, {before} before");
        }
        let row =
            client.query_one("SELECT count(*), count(DISTINCT uri) FROM rag.documents WHERE source = 'pages'", &[])?;
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (PAGES as i64, PAGES as i64));
        let sql = "SELECT pending::int8, failed FROM rag.status WHERE source = 'pages'";
        let row = client.query_one(sql, &[])?;
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (0, 0), "pending, failed");
        assert_eq!(search(&mut client)?, expected);
        let engines: Vec<Process> = cluster.processes().into_iter().filter(|p| p.name == "pg_rag_engine").collect();
        assert_eq!(engines.len(), 1, "{engines:?}");
        Ok(())
    })
}

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Victim {
    Launcher,
    JobWorker,
    Syncer,
    Server,
}

/// Pages as they must be in the end, whatever happened on the way; each says in which round it was last written.
fn whole(client: &mut Client, round: usize) -> TestResult {
    let sql =
        "SELECT count(DISTINCT c.document_id) FROM rag.chunk c WHERE c.content LIKE '%Round ' || $1::text || '.%'";
    let newest: i64 = client.query_one(sql, &[&round.to_string()])?.get(0);
    assert_eq!(newest, 2 * PAGES as i64, "documents that tell of round {round}");
    let row = client.query_one(
        "SELECT count(*), count(DISTINCT uri) FROM rag.documents WHERE source IN ('queued', 'called')",
        &[],
    )?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (2 * PAGES as i64, PAGES as i64));
    let sql = "SELECT count(*) FROM (SELECT FROM rag.chunk GROUP BY chunk_key HAVING count(*) > 1) d";
    assert_eq!(client.query_one(sql, &[])?.get::<_, i64>(0), 0, "chunks are there twice");
    let sql =
        "SELECT count(*) FROM rag.chunk c WHERE NOT EXISTS (SELECT FROM rag.chunk_embedding e WHERE e.chunk_id = c.id)";
    assert_eq!(client.query_one(sql, &[])?.get::<_, i64>(0), 0, "chunks have no vector");
    let sql = "SELECT (SELECT count(*) FROM rag.chunk_embedding e WHERE NOT EXISTS (SELECT FROM rag.chunk c WHERE c.id = e.chunk_id))
             + (SELECT count(*) FROM rag.chunk c WHERE NOT EXISTS (SELECT FROM rag.document d WHERE d.id = c.document_id))";
    assert_eq!(client.query_one(sql, &[])?.get::<_, i64>(0), 0, "rows are left of what is gone");
    Ok(())
}

fn pid_of(client: &mut Client, backend_type: &str) -> Option<i32> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = $1 LIMIT 1";
    client.query_opt(sql, &[&backend_type]).ok()??.get(0)
}

#[test]
fn whatever_is_killed_everything_converges() -> TestResult {
    let wanted = if is_full() { 30 } else { 5 };
    // Without a preloaded launcher, jobs go on at the first use after a restart; with one at once.
    with_cluster(&["shared_preload_libraries = 'pg_rag'"], |cluster| {
        let place = write_pages(cluster)?;
        let mut client = cluster.connect()?;
        for name in ["queued", "called"] {
            client.execute("SELECT rag.add_source($1, 'markdown', $2)", &[&name, &place])?;
        }
        let mut chance = Chance::new(2);
        let mut killed: HashMap<Victim, usize> = HashMap::new();
        let mut round = 0;
        let victims = [Victim::Launcher, Victim::JobWorker, Victim::Syncer, Victim::Server];
        // A victim that was through already does not count.
        while killed.values().sum::<usize>() < wanted {
            assert!(round < 5 * wanted, "{killed:?} after {round} rounds");
            let victim = if round < victims.len() { victims[round] } else { *chance.pick(&victims) };
            // Every page is new again for half of the rounds.
            if round % 2 == 0 {
                for page in 0..PAGES {
                    let path = format!("pages/{page:03}.md");
                    let text = fs::read_to_string(cluster.files().join(&path))?;
                    cluster.write(&path, format!("{text}\nRound {round}.\n"))?;
                }
            }
            client.batch_execute("SELECT rag.enqueue_sync('queued')")?;
            let mut syncer = cluster.connect()?;
            let syncer_pid: i32 = syncer.query_one("SELECT pg_backend_pid()", &[])?.get(0);
            let syncing = std::thread::spawn(move || syncer.batch_execute("CALL rag.sync('called')").is_ok());
            if victim == Victim::JobWorker {
                // It lives for a moment only.
                let here = || pid_of(&mut client, "pg_rag job worker").is_some();
                wait_until("a job worker is there", Duration::from_secs(20), here)?;
                chance.sleep(0, 400);
            } else {
                chance.sleep(50, 1500);
            }
            let launcher = client
                .query_one("SELECT launcher_pid FROM rag.health()", &[])
                .ok()
                .and_then(|row| row.get::<_, Option<i32>>(0));
            let pid = match victim {
                Victim::Launcher => launcher,
                Victim::JobWorker => pid_of(&mut client, "pg_rag job worker"),
                Victim::Syncer => Some(syncer_pid),
                Victim::Server => None,
            };
            let family = process::descendants(cluster.postmaster()?);
            match (victim, pid) {
                (Victim::Server, _) => {
                    cluster.restart(Mode::Immediate)?;
                    *killed.entry(victim).or_default() += 1;
                }
                // A kill -9 of any of these makes PostgreSQL end all sessions.
                (_, Some(pid)) => {
                    *killed.entry(victim).or_default() += usize::from(process::signal(pid, "KILL").is_ok());
                }
                // It was through already.
                (_, None) => {}
            }
            let _ = syncing.join();
            client = cluster.reconnect()?;
            // Nobody asks again: what was queued goes on by itself.
            wait_until(&format!("round {round}, {victim:?}: the jobs are done"), Duration::from_secs(600), || {
                let sql = "SELECT count(*) FROM rag.job WHERE state IN ('pending', 'running')";
                match client.query_one(sql, &[]) {
                    Ok(row) => row.get::<_, i64>(0) == 0,
                    Err(_) => {
                        client = cluster.reconnect().unwrap_or_else(|e| panic!("{e:?}"));
                        false
                    }
                }
            })?;
            let dead: i64 = client.query_one("SELECT count(*) FROM rag.failed_jobs", &[])?.get(0);
            assert_eq!(dead, 0, "round {round}, {victim:?}");
            client.batch_execute("CALL rag.sync('called')")?;
            whole(&mut client, round / 2 * 2)?;
            let orphans: Vec<&Process> = family
                .iter()
                .filter(|p| p.is_alive() && Process::find(p.parent).is_none_or(|parent| parent.pid == 1))
                .collect();
            assert!(orphans.is_empty(), "round {round}, {victim:?}: {orphans:?}");
            round += 1;
        }
        let running: i64 = client.query_one("SELECT count(*) FROM rag.sync WHERE status = 'running'", &[])?.get(0);
        assert_eq!(running, 0);
        eprintln!("{round} rounds: killed {killed:?}");
        assert!(!is_full() || victims.iter().all(|victim| killed.contains_key(victim)), "{killed:?}");
        Ok(())
    })
}

#[test]
fn a_hung_engine_is_replaced() -> TestResult {
    hung(|client, expected| {
        assert_eq!(search(client)?, expected);
        Ok(())
    })
}

#[test]
fn a_hung_engine_is_replaced_though_every_statement_gives_up_before() -> TestResult {
    hung(|client, expected| {
        client.batch_execute("SET statement_timeout = '500ms'")?;
        wait_until("a search is answered again", Duration::from_secs(40), || {
            search(client).is_ok_and(|found| found == expected)
        })?;
        Ok(client.batch_execute("RESET statement_timeout")?)
    })
}

#[test]
fn a_job_worker_that_is_stuck_loses_its_job() -> TestResult {
    with_cluster(&["pg_rag.job_lease = '20s'"], |cluster| {
        let place = write_pages(cluster)?;
        let mut client = cluster.connect()?;
        client.execute("SELECT rag.add_source('pages', 'markdown', $1)", &[&place])?;
        client.batch_execute("CALL rag.sync('pages')")?;
        client.batch_execute("DELETE FROM rag.chunk_embedding; SELECT * FROM rag.repair()")?;
        let mut stuck = None;
        // It is stopped while it waits for the engine, where it holds no locks: what is locked nobody can take over.
        let idle = "SELECT a.pid FROM rag.job j JOIN pg_stat_activity a ON a.pid = j.worker_pid
                     WHERE j.state = 'running' AND a.xact_start IS NULL AND a.wait_event_type = 'Extension'";
        wait_until("a worker waits for the engine", Duration::from_secs(60), || {
            let waiting =
                |client: &mut Client| client.query_opt(idle, &[]).ok().flatten().map(|row| row.get::<_, i32>(0));
            let Some(pid) = waiting(&mut client) else { return false };
            if process::signal(pid, "STOP").is_ok() && waiting(&mut client) == Some(pid) {
                stuck = Some(pid);
            } else {
                process::signal(pid, "CONT").ok();
            }
            stuck.is_some()
        })?;
        let stuck = stuck.ok_or_else(|| Failure::new("no worker"))?;
        wait_until("another worker has done the job", Duration::from_secs(240), || {
            let sql = "SELECT state = 'done' AND attempts > 1 FROM rag.job WHERE kind = 'embed'";
            client.query_one(sql, &[]).is_ok_and(|row| row.get::<_, bool>(0))
        })?;
        let failure: String = client.query_one("SELECT message FROM rag.job_failure ORDER BY id LIMIT 1", &[])?.get(0);
        assert_eq!(failure, "the job worker was lost");
        // Awake again, it finds that the job is not its own any more.
        process::signal(stuck, "CONT")?;
        wait_until("it ends", Duration::from_secs(60), || Process::find(stuck).is_none())?;
        let sql = "SELECT count(*) FROM rag.job WHERE state <> 'done'";
        assert_eq!(client.query_one(sql, &[])?.get::<_, i64>(0), 0);
        let pending: i64 = client.query_one("SELECT pending FROM rag.status", &[])?.get(0);
        assert_eq!(pending, 0);
        Ok(())
    })
}

/// Stops the engine, so that it is alive and silent, and has it replaced by what `again` does.
fn hung(again: impl FnOnce(&mut Client, Vec<String>) -> TestResult) -> TestResult {
    with_cluster(&[], |cluster| {
        let mut client = cluster.connect()?;
        fill_stable(&mut client)?;
        let expected = search(&mut client)?;
        let engine = cluster.engine(&mut client)?;
        process::signal(engine.pid, "STOP")?;
        let started = Instant::now();
        again(&mut client, expected)?;
        assert!(started.elapsed() < Duration::from_secs(45), "it took {:?}", started.elapsed());
        assert!(!engine.is_alive(), "the hung engine is still there");
        assert_ne!(cluster.engine(&mut client)?.pid, engine.pid);
        assert!(cluster.log().contains("does not answer any more"), "{}", cluster.log());
        Ok(())
    })
}
