// SPDX-License-Identifier: PostgreSQL

//! Which options and limits mean something for which sources: one table.
//!
//! What does not apply is refused and not ignored, because whoever gives it believes that it holds. Must not judge values.

use super::kind::SourceKind;
use super::{is_feed, is_url};
use crate::error::{Error, Result};

/// Where the documents are, as far as options depend on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location<'a> {
    /// Anywhere that the kind can be: what applies to some location is taken.
    Any,
    /// At this path or URL.
    At(&'a str),
    /// In the statement itself.
    Inline,
}

/// Whether an option or limit applies to some sources of a kind.
pub(super) fn to_kind(key: &str, kind: SourceKind) -> bool {
    match key {
        "glob" | "ignore" => !kind.is_of_records(),
        // Of a thread, a work item or a recording only the key, see the options.
        "fields" => kind.is_of_records() || kind == SourceKind::Transcript,
        "ref" | "expect_commit" | "max_download_bytes" | "max_download_seconds" => kind == SourceKind::Git,
        "password" | "max_pages" => kind == SourceKind::Pdf || kind.is_of_many_formats(),
        "max_entries" | "max_total_bytes" | "max_ratio" | "max_depth" => kind == SourceKind::Zip,
        _ => true,
    }
}

/// Why an option that applies to a kind does not apply to a location of it.
fn not_at(key: &str, kind: SourceKind, location: &str) -> Option<&'static str> {
    match key {
        "glob" | "ignore" if is_feed(kind, location) => Some("A feed holds posts and no files."),
        "glob" | "ignore" if is_url(location) && kind != SourceKind::Git => Some("At a URL is one page and no folder."),
        "max_download_bytes" | "max_download_seconds" if !is_url(location) => Some("Only what is at a URL is cloned."),
        _ => None,
    }
}

/// Fails when an option or limit (`what`) does not apply.
pub(super) fn check(what: &str, key: &str, kind: SourceKind, location: Location<'_>) -> Result<()> {
    let refused = |to: String| Err(Error::invalid(format!("{what} \"{key}\" does not apply to {to}")));
    if !to_kind(key, kind) {
        return refused(format!("kind \"{}\"", kind.name()));
    }
    match location {
        Location::Any => Ok(()),
        Location::Inline if matches!(key, "glob" | "ignore" | "max_documents") => {
            refused("inline documents".to_owned())
        }
        Location::Inline if key == "text_search_config" => refused("inline documents".to_owned())
            .map_err(|e| e.with_hint("Inline documents of a collection share the configuration of their source.")),
        Location::Inline => Ok(()),
        Location::At(location) => match not_at(key, kind, location) {
            None => Ok(()),
            Some(why) => refused(format!("\"{location}\""))
                .map_err(|e| e.with_detail(why).with_hint("Leave it out of the source's options.")),
        },
    }
}
