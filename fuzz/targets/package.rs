// SPDX-License-Identifier: PostgreSQL

//! Word documents and books. The input is the XML of all their members, because a checksum stops whoever changes a packed
//! byte; the first byte chooses which of the two it becomes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::{Reading, choice};
use rawzip::{CompressionMethod, ZipArchiveWriter};
use std::io::Write;

const WORD: &[&str] = &["word/document.xml", "word/styles.xml", "word/numbering.xml", "docProps/core.xml"];
const BOOK: &[&str] = &["b.opf", "c.xhtml", "nav.xhtml", "toc.ncx"];
const CONTAINER: &[u8] = b"<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>";

fuzz_target!(|input: &[u8]| {
    let Some((kind, xml)) = choice(input, &[SourceKind::Docx, SourceKind::Epub]) else {
        return;
    };
    let mut packed = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut packed);
    let names = if kind == SourceKind::Docx { WORD } else { BOOK };
    let container = (kind == SourceKind::Epub).then_some(("META-INF/container.xml", CONTAINER));
    for (name, data) in names.iter().map(|name| (*name, xml)).chain(container) {
        let member = archive.new_file(name).compression_method(CompressionMethod::STORE).start();
        let (mut entry, config) = member.expect("a member");
        let mut writer = config.wrap(&mut entry);
        writer.write_all(data).expect("memory");
        let (_, descriptor) = writer.finish().expect("memory");
        entry.finish(descriptor).expect("memory");
    }
    archive.finish().expect("memory");
    Reading::of(input).inline(kind, "a", &packed);
});
