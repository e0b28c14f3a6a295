// SPDX-License-Identifier: PostgreSQL

//! Tables in pages that people write: what stands between `<!-- table NAME -->` and `<!-- end -->` is renewed, the rest stays.

use rag_core::{Error, Result};

const BEGIN: &str = "<!-- table ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// The page with its tables renewed. A mark that names no table, or that does not end, is an error; so is a page without any,
/// because whoever asked for it expected one.
pub fn renewed(page: &str, tables: &[(&'static str, String)]) -> Result<String> {
    let mut out = String::new();
    let mut rest = page;
    let mut count = 0;
    while let Some(begin) = rest.find(BEGIN) {
        let after = &rest[begin + BEGIN.len()..];
        let close = after.find(CLOSE).ok_or_else(|| Error::invalid("a mark of a table does not end"))?;
        let name = &after[..close];
        let body = &after[close + CLOSE.len()..];
        let end = body.find(END).ok_or_else(|| Error::invalid(format!("table \"{name}\" has no {END}")))?;
        let table = tables.iter().find(|(known, _)| *known == name);
        let (_, table) = table.ok_or_else(|| Error::invalid(format!("there is no table \"{name}\"")))?;
        out.push_str(&rest[..begin]);
        out.push_str(&format!("{BEGIN}{name}{CLOSE}\n{}\n{END}", table.trim_end()));
        rest = &body[end + END.len()..];
        count += 1;
    }
    if count == 0 {
        return Err(Error::invalid(format!("the page has no mark \"{BEGIN}NAME{CLOSE}\"")));
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_marks_changes() {
        let page = "# A\n<!-- table one -->\nold\n<!-- end -->\ntext\n<!-- table two -->\n<!-- end -->\nlast\n";
        let tables = [("one", "| 1 |\n".to_owned()), ("two", "| 2 |".to_owned())];
        let wanted =
            "# A\n<!-- table one -->\n| 1 |\n<!-- end -->\ntext\n<!-- table two -->\n| 2 |\n<!-- end -->\nlast\n";
        assert_eq!(renewed(page, &tables).as_deref(), Ok(wanted));
        assert_eq!(renewed(wanted, &tables).as_deref(), Ok(wanted), "again it is the same");
    }

    #[test]
    fn a_mark_that_cannot_be_followed_is_an_error() {
        let tables = [("one", "x".to_owned())];
        for page in ["none", "<!-- table one -->", "<!-- table two -->\n<!-- end -->", "<!-- table one"] {
            assert!(renewed(page, &tables).is_err(), "{page}");
        }
    }
}
