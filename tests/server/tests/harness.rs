// SPDX-License-Identifier: PostgreSQL

//! The harness on a cluster without pg_rag: what the other tests rely on.

use rag_server_tests::{Mode, TestResult, process, with_bare_cluster};
use std::time::Duration;

#[test]
fn a_cluster_takes_settings_and_leaves_nothing_behind() -> TestResult {
    let mut left = None;
    with_bare_cluster(&["work_mem = '7MB'"], |cluster| {
        let row = cluster
            .connect()?
            .query_one("SELECT current_setting('work_mem'), current_setting('data_directory')", &[])?;
        assert_eq!(row.get::<_, String>(0), "7MB");
        assert_eq!(row.get::<_, String>(1), cluster.data().to_string_lossy());
        assert!(cluster.processes().len() >= 4, "{:?}", cluster.processes());
        left = Some(cluster.data());
        Ok(())
    })?;
    let data = left.ok_or_else(|| rag_server_tests::Failure::new("the test did not run"))?;
    process::wait_until("all processes end", Duration::from_secs(5), || process::of_folder(&data).is_empty())?;
    assert!(!data.exists());
    Ok(())
}

#[test]
fn a_cluster_restarts_and_survives_a_killed_backend() -> TestResult {
    with_bare_cluster(&[], |cluster| {
        let before = cluster.postmaster()?;
        cluster.restart(Mode::Immediate)?;
        assert_ne!(cluster.postmaster()?, before);
        let mut client = cluster.connect()?;
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        assert_eq!(cluster.backends(&mut client)?, [pid]);
        process::signal(pid, "KILL")?;
        // Whoever connects before the server has seen it is ended with all others.
        let seen = || cluster.log().contains("was terminated by signal 9");
        process::wait_until("the server sees it", Duration::from_secs(10), seen)?;
        let mut again = cluster.reconnect()?;
        assert_eq!(again.query_one("SELECT 1", &[])?.get::<_, i32>(0), 1);
        assert!(cluster.stop(Mode::Fast)? < Duration::from_secs(5));
        assert!(cluster.processes().is_empty());
        Ok(())
    })
}

#[test]
fn files_are_readable_for_the_server() -> TestResult {
    with_bare_cluster(&[], |cluster| {
        let path = cluster.write("a/b/c.md", "# Title\n")?;
        let text: String = cluster.connect()?.query_one("SELECT pg_read_file($1)", &[&path.to_string_lossy()])?.get(0);
        assert_eq!(text, "# Title\n");
        let version = cluster.program("psql").args(["-XAtc", "SELECT 1"]).output()?;
        assert_eq!(String::from_utf8_lossy(&version.stdout), "1\n", "{}", String::from_utf8_lossy(&version.stderr));
        Ok(())
    })
}

#[test]
fn a_failed_test_keeps_its_cluster() -> TestResult {
    let mut folder = None;
    let failed = with_bare_cluster(&[], |cluster| {
        folder = Some(cluster.socket().to_owned());
        cluster.connect()?.execute("SELECT 1/0", &[])?;
        Ok(())
    });
    let folder = folder.ok_or_else(|| rag_server_tests::Failure::new("the test did not run"))?;
    assert_eq!(failed.err().map(|f| f.to_string()).as_deref(), Some("division by zero (22012)"));
    assert!(folder.join("log").exists(), "the folder is gone");
    let data = folder.join("data");
    process::wait_until("the server ends", Duration::from_secs(5), || process::of_folder(&data).is_empty())?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
