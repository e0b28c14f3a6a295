// SPDX-License-Identifier: PostgreSQL

//! Packages of any members, as Word documents and books are.
#![allow(clippy::expect_used, reason = "a test may")]

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// A ZIP file of some members.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut out);
    for (name, data) in members {
        let (mut entry, config) =
            archive.new_file(name).compression_method(rawzip::CompressionMethod::DEFLATE).start().expect("a member");
        let encoder = DeflateEncoder::new(&mut entry, Compression::best());
        let mut writer = config.wrap(encoder);
        writer.write_all(data).expect("data");
        let (encoder, descriptor) = writer.finish().expect("data");
        encoder.finish().expect("data");
        entry.finish(descriptor).expect("a member");
    }
    archive.finish().expect("an archive");
    out
}
