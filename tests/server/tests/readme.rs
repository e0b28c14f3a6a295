// SPDX-License-Identifier: PostgreSQL

//! What the README shows is what happens.

use rag_server_tests::readme::{Block, blocks, normalised};
use rag_server_tests::{Cluster, Failure, TestResult, project, with_cluster};
use std::io::Write;
use std::process::Stdio;

/// A folder that the README may name; it is the cluster's own folder of files with the project's `docs/` in it.
const FOLDER: &str = "/srv/docs";
const MARK: &str = "--pg_rag-block-ends--";

#[test]
fn every_sql_block_runs_and_prints_what_the_page_shows() -> TestResult {
    let page = std::fs::read_to_string(project().join("README.md"))?;
    let blocks = blocks(&page);
    assert!(blocks.len() >= 4, "the README has {} SQL blocks", blocks.len());
    assert!(blocks.iter().any(|b| b.output.is_some()), "the README shows no output");
    with_cluster(&[], |cluster| {
        // The page begins with CREATE EXTENSION.
        cluster
            .connect()?
            .batch_execute("DROP EXTENSION IF EXISTS pg_rag CASCADE; DROP EXTENSION IF EXISTS vector CASCADE")?;
        let docs = copy_docs(cluster)?;
        let outputs = run(cluster, &blocks, &docs)?;
        for (block, output) in blocks.iter().zip(&outputs) {
            let Some(shown) = &block.output else { continue };
            let (shown, printed) = (normalised(shown), normalised(&output.replace(&docs, FOLDER)));
            assert!(shown == printed, "README.md line {}: shown is\n{shown}\nbut printed was\n{printed}", block.line);
        }
        Ok(())
    })
}

/// Copies the project's Markdown pages to where the server may read them.
fn copy_docs(cluster: &Cluster) -> TestResult<String> {
    if let Ok(entries) = std::fs::read_dir(project().join("docs")) {
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "md") {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                cluster.write(&format!("docs/{name}"), std::fs::read(&path)?)?;
            }
        }
    }
    Ok(cluster.files().join("docs").to_string_lossy().into_owned())
}

/// Runs all blocks in one session of psql, as a reader would type them; returns what each printed.
fn run(cluster: &Cluster, blocks: &[Block], docs: &str) -> TestResult<Vec<String>> {
    let mut psql = cluster
        .program("psql")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let script: String =
        blocks.iter().map(|b| format!("{}\n;\n\\echo {MARK}\n", b.sql.replace(FOLDER, docs))).collect();
    let mut stdin = psql.stdin.take().ok_or_else(|| Failure::new("psql has no standard input"))?;
    // Not in this thread: psql may write more than a pipe holds before it has read everything.
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let done = psql.wait_with_output()?;
    // A psql that stopped early leaves a broken pipe; its own error says more.
    writer.join().ok();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    let mut outputs: Vec<String> = printed.split(&format!("{MARK}\n")).map(str::to_owned).collect();
    // What follows the last mark is the output of the block that failed, or nothing.
    outputs.pop();
    if !done.status.success() {
        let line = blocks.get(outputs.len()).map_or(0, |b| b.line);
        let error = String::from_utf8_lossy(&done.stderr);
        return Err(Failure::new(format!("README.md line {line}: the SQL fails\n{error}\n{}", cluster.log())));
    }
    assert_eq!(outputs.len(), blocks.len(), "{printed}");
    Ok(outputs)
}
