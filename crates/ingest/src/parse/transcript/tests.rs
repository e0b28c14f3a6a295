// SPDX-License-Identifier: PostgreSQL

//! Transcripts of each format; oracles over whole files are in `eval/oracle`.

use super::*;
use rag_core::source::SourceKind;
use serde_json::json;

fn read(text: &[u8]) -> Parsed {
    parse(text, &SourceOptions::defaults(SourceKind::Transcript)).expect("a transcript")
}

/// Turns by speaker, and times with what was said.
#[allow(clippy::type_complexity, reason = "a test")]
fn told(parsed: &Parsed) -> (Vec<(Option<&str>, &str)>, Vec<(u64, u64, &str)>) {
    let text = &parsed.text;
    let turns = parsed.structure.parts.iter().map(|p| (p.facts.speaker.as_deref(), &text[p.range.clone()]));
    let times = parsed.structure.times.iter().map(|t| (t.from, t.to, &text[t.range.clone()]));
    (turns.collect(), times.collect())
}

#[test]
fn subrip() {
    let text = "\u{FEFF}1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Hello</i>,\r\nworld.\r\n\r\n2\r\n00:00:03.5 --> 100:00:04 X1:1\r\n[Ann]: Hi {\\an8}there < 3\r\n\r\nagain\r\n\r\n3\r\n00:00:01,000 --> 00:00:02,000\r\n\r\n4\r\nbad --> 00:00:09,000\r\nNo begin.\r\n5\r\n00:00:09,000 --> 00:00:08,000\r\n7\r\n";
    let parsed = read(text.as_bytes());
    let (turns, times) = told(&parsed);
    // The cue without a begin stands behind the one before it, which ended before the first.
    assert_eq!(turns, [(None, "No begin. Hello, world."), (Some("Ann"), "Hi there < 3 again"), (None, "7")]);
    let expected = [(1000, 2500, "Hello, world."), (3500, 360_004_000, "Hi there < 3 again"), (9000, 9000, "7")];
    assert_eq!(times, expected);
    assert_eq!(parsed.metadata["mended_times"], json!(1));
    assert_eq!(parsed.repaired_bytes, 0);
}

#[test]
fn webvtt() {
    let text = "WEBVTT - A talk\nKind: captions\nLanguage: en\n\nSTYLE\n::cue { a: b }\n\nNOTE\nx\n\nintro\n00:01.000 --> 00:02.000 align:start\n<v.loud Ann &amp; Co>Hello <b>you</b> &lt;3</v> bye\n<v Bob><00:01.500>Hi\n\n00:00:02.000 --> 00:00:03.000\n- next\n00:00:03.000 --> 00:00:04.000\nlast <3\n";
    let parsed = read(text.as_bytes());
    let (turns, times) = told(&parsed);
    let expected = [(Some("Ann & Co"), "Hello you <3"), (None, "bye"), (Some("Bob"), "Hi"), (None, "- next last <3")];
    assert_eq!(turns, expected);
    assert_eq!(times[2..], [(1000, 2000, "Hi"), (2000, 3000, "- next"), (3000, 4000, "last <3")]);
    assert_eq!((parsed.title.as_deref(), parsed.language.as_deref()), (Some("A talk"), Some("en")));
    assert_eq!(read(b"WEBVTT\n").text, "");
}

#[test]
fn json_of_recognisers() {
    let whisper = json!({"text": " a b", "language": "en", "duration": 5.5, "segments": [
        {"id": 1, "start": 1.0004, "end": 2, "text": " b", "words": []}, {"id": 0, "start": 0.5, "end": 1.0, "text": " a"}
    ]});
    let parsed = read(whisper.to_string().as_bytes());
    assert_eq!(told(&parsed), (vec![(None, "a b")], vec![(500, 1000, "a"), (1000, 2000, "b")]));
    assert_eq!(parsed.language.as_deref(), Some("en"));
    assert_eq!(Value::Object(parsed.metadata), json!({"duration": 5.5, "format": "json"}));
    let own = json!({"id": "r1", "title": "T", "speakers": {"A": "Ann"}, "segments": [
        {"start": "00:00:02.5", "end": "3.5", "text": "x", "speaker": "A"},
        {"start_ms": 0, "end_ms": 2500, "text": "y", "speaker": 1},
        {"text": "z", "speaker": "Bob"}
    ]});
    let parsed = read(own.to_string().as_bytes());
    assert_eq!(told(&parsed).0, [(Some("1"), "y"), (Some("Bob"), "z"), (Some("Ann"), "x")]);
    assert_eq!(told(&parsed).1, [(0, 2500, "y"), (2500, 3500, "x")]);
    assert_eq!((parsed.external_id.as_deref(), parsed.title.as_deref()), (Some("r1"), Some("T")));
    let cpp = json!({"transcription": [{"offsets": {"from": 10, "to": 20}, "text": "w"}]});
    assert_eq!(told(&read(cpp.to_string().as_bytes())).1, [(10, 20, "w")]);
    assert_eq!(told(&read(b"[{\"speaker\": \"A\", \"content\": \"c\"}, \"d\"]")).0, [(Some("A"), "c"), (None, "d")]);
}

#[test]
fn segments_are_in_one_order() {
    let segment = |from, to, id: &str, text: &str| Segment {
        from: Some(from),
        to: Some(to),
        id: Some(id.to_owned()),
        text: text.to_owned(),
        ..Segment::default()
    };
    let mut all = vec![
        segment(0, 5, "10", "d"),
        segment(0, 5, "9", "c"),
        segment(0, 4, "11", "b"),
        segment(-7, -1, "1", "a"),
        segment(0, 5, "x", "e"),
    ];
    for _ in 0..all.len() {
        all.rotate_left(1);
        let mut parsed = Parsed::default();
        tell(all.clone(), &mut parsed);
        assert_eq!(parsed.text, "a b c d e");
        assert_eq!(parsed.metadata["mended_times"], json!(1));
    }
}

#[test]
fn what_is_no_transcript_is_refused() {
    let refuse = |text: &str| {
        parse(text.as_bytes(), &SourceOptions::defaults(SourceKind::Transcript)).expect_err("refused").message
    };
    assert_eq!(refuse("prose"), "transcript has no cue");
    assert_eq!(refuse("{\"a\": 1}"), "transcript has no segments");
    assert_eq!(refuse("[1]"), "segment 1 of the transcript is neither an object nor a text");
    assert_eq!(refuse("[{"), "transcript is not valid JSON");
    assert_eq!(read(b" \n").structure.parts, []);
}

#[test]
fn stamps() {
    for (text, ms) in [
        ("00:00:01,000", Some(1000)),
        ("1:02.5", Some(62_500)),
        ("123:00:00.12345", Some(442_800_123)),
        ("-00:00:01,000", Some(-1000)),
        ("00:01", Some(1000)),
        ("1", None),
        ("a:b", None),
        ("00:00:99999999999999999999", None),
        ("9223372036854775807:00:00", None),
        ("2499999999:59:59,999", Some(8_999_999_999_999_999)),
        ("2500000000:00:00", Some(9_000_000_000_000_000)),
        ("2500000000:00:00,001", None),
        ("-2500000001:00:00", None),
        ("2562047788014:00:00", None),
        ("1:2:3:4", None),
    ] {
        assert_eq!(cues::stamp(text), ms, "{text}");
    }
}

#[test]
fn bombs_end_well() {
    for text in [
        "1\n00:00:00,000 --> 00:00:01,000\n".repeat(20_000),
        format!("WEBVTT\n\n00:00.000 --> 00:01.000\n{}", "<".repeat(200_000)),
        format!("WEBVTT\n\n00:00.000 --> 00:01.000\n{}", "<v a>".repeat(100_000)),
        format!("1\n00:00:00,000 --> 00:00:01,000\n{}", "{\\".repeat(30_000)),
        format!("1\n00:00:00,000 --> 00:00:01,000\n{}", "<i ".repeat(100_000)),
    ] {
        read(text.as_bytes());
    }
}
