// SPDX-License-Identifier: PostgreSQL

use super::*;

fn one(json: &str) -> Result<Question> {
    from_json(json).map(|mut all| all.remove(0))
}

fn message(json: &str) -> String {
    from_json(json).expect_err(json).message
}

#[test]
fn a_question_is_read_with_all_it_has() {
    let line = r#"{"id":"q1","text":"why?","strata":["b","a","b"],"cluster":"c","filter":{"source":"docs"},"metadata":{"by":"x"},
        "gold":[{"source":"docs","uri":"a.md","lines":[3,10],"grade":2,"note":"rule"},{"external_id":7,"pages":4},
                {"uri":"b","chars":[0,9]},{"uri":"c","quote":" some words "}]}"#;
    let question = one(&line.replace('\n', "")).expect("valid");
    assert_eq!((question.key.as_str(), question.text.as_str(), question.answerable), ("q1", "why?", true));
    assert_eq!(question.strata, ["a", "b"]);
    let spans: Vec<&Span> = question.gold.iter().map(|g| &g.span).collect();
    let quote = Span::Quote(" some words ".into());
    assert_eq!(spans, [&Span::Lines(3, 10), &Span::Pages(4, 4), &Span::Chars(0, 9), &quote]);
    assert_eq!(question.gold[0].grade, 2);
    assert_eq!(question.gold[1].document, Address::ExternalId("7".into()));
    assert_eq!(question.gold[1].shown(), "pages 4 to 4 of external id \"7\"");
}

#[test]
fn lines_and_an_array_are_the_same() {
    let a = r#"{"id":"1","text":"a","gold":[{"uri":"x"}]}"#;
    let b = r#"{"id":"2","text":"b","answerable":false}"#;
    assert_eq!(from_json(&format!("{a}\n\n{b}\n")), from_json(&format!("[{a},{b}]")));
}

#[test]
fn errors_name_the_question() {
    let gold = r#""gold":[{"uri":"x"}]"#;
    for (json, expected) in [
        (r#"{"text":"a"}"#.to_owned(), "question 1 of the list has no \"id\""),
        (r#"{"id":"q"}"#.to_owned(), "question \"q\" has no \"text\""),
        (r#"{"id":"q","text":" ","gold":[{"uri":"x"}]}"#.to_owned(), "question \"q\" has no text"),
        (r#"{"id":"q","text":"a"}"#.to_owned(), "question \"q\" has no gold of grade 1 or more"),
        (
            format!(r#"{{"id":"q","text":"a","answerable":false,{gold}}}"#),
            "question \"q\" is not answerable, but has gold of grade 1 or more",
        ),
        (
            format!(
                r#"{{"id":"q","text":"a",{gold}}}
            {{"id":"q","text":"a",{gold}}}"#
            ),
            "question \"q\" comes twice",
        ),
        (
            r#"{"id":"q","text":"a","gold":[{"uri":"x"},{"uri":"x","lines":[1,2]}]}"#.to_owned(),
            "question \"q\" has gold that is whole documents and gold that is spans",
        ),
        (
            r#"{"id":"q","text":"a","gold":[{"uri":"x","lines":[4,3]}]}"#.to_owned(),
            "question \"q\" has gold that is an empty range: lines 4 to 3 of \"x\"",
        ),
        (
            r#"{"id":"q","text":"a","gold":[{"uri":"x","lines":[1,2],"quote":"b"}]}"#.to_owned(),
            "gold 1 of question \"q\" has more than one of \"lines\", \"pages\", \"chars\" and \"quote\"",
        ),
        (
            r#"{"id":"q","text":"a","gold":[{"lines":[1,2]}]}"#.to_owned(),
            "gold 1 of question \"q\" needs either \"uri\" or \"external_id\"",
        ),
        (
            r#"{"id":"q","text":"a","gold":[{"uri":"x","grade":1.5}]}"#.to_owned(),
            "gold 1 of question \"q\": \"grade\" must be a whole number from -100 to 1000, not 1.5",
        ),
        (
            format!(r#"{{"id":"q","text":"a","filter":{{"sorce":"x"}},{gold}}}"#),
            "question \"q\": unknown filter key \"sorce\"",
        ),
        (format!(r#"{{"id":"q","text":"a","answerabel":true,{gold}}}"#), "question \"q\": unknown key \"answerabel\""),
        ("".to_owned(), "there is no question"),
        ("{".to_owned(), "line 1 of the questions: EOF while parsing an object at line 1 column 1"),
    ] {
        assert_eq!(message(&json), expected);
    }
    assert!(from_json(r#"{"id":"q","text":"a","answerabel":true}"#).expect_err("key").hint.is_some());
}

#[test]
fn what_is_judged_and_not_relevant_may_be_anything() {
    let json = r#"{"id":"q","text":"a","gold":[{"uri":"x","lines":[1,2]},{"uri":"y","grade":0,"note":"stale"}]}"#;
    assert_eq!(one(json).expect("valid").gold[1].grade, 0);
    let json = r#"{"id":"q","text":"a","answerable":false,"gold":[{"uri":"y","grade":0}]}"#;
    assert!(!one(json).expect("valid").answerable);
}

#[test]
fn beir_is_read_and_what_nobody_judged_is_counted() {
    let queries = "{\"_id\":\"q0\",\"text\":\"?\"}\n{\"_id\":\"q2\",\"text\":\"two\"}\n{\"_id\":\"q1\",\"text\":\"one\",\"metadata\":{}}\n";
    let (questions, left_out) =
        from_beir(queries, "query-id\tcorpus-id\tscore\nq1\td 1\t1\nq1\td2\t0\nq2\td9\t2\n").expect("reads");
    assert_eq!((questions.iter().map(|q| q.key.as_str()).collect::<Vec<_>>(), left_out), (vec!["q2", "q1"], 1));
    assert_eq!(questions[1].gold[0].document, Address::ExternalId("d 1".into()));
    assert_eq!(questions[1].gold.iter().map(|g| g.grade).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_header_may_be_missing_and_ids_may_be_numbers() {
    let queries = "{\"_id\":1,\"text\":\"one\"}\n{\"_id\":\"2\",\"text\":\"two\"}";
    let (questions, _) = from_beir(queries, "1\td1\t1\n1\td2\t1\n2\td3\t1\n").expect("reads");
    assert_eq!(questions.iter().map(|q| q.gold.len()).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn what_cannot_be_stored_names_its_question() {
    for line in [
        r#"{"id":"a","text":"t\u0000","gold":[{"uri":"x"}]}"#,
        r#"{"id":"a","text":"t","gold":[{"uri":"x\u0000"}]}"#,
        r#"{"id":"a","text":"t","cluster":"\u0000","gold":[{"uri":"x"}]}"#,
        r#"{"id":"a","text":"t","metadata":{"k":["\u0000"]},"gold":[{"uri":"x"}]}"#,
        r#"{"id":"a","text":"t","gold":[{"uri":"x","quote":"\u0000"}]}"#,
        r#"{"id":"a","text":"t","gold":[{"uri":"x","note":"\u0000"}]}"#,
    ] {
        assert_eq!(message(line), "question \"a\" has a character that PostgreSQL cannot store (U+0000)");
    }
    assert!(message(r#"{"id":"a\u0000b","text":"t","gold":[{"uri":"x"}]}"#).contains("U+0000"));
}

#[test]
fn trec_is_read() {
    let (questions, left_out) = from_trec("1\tone two\n2\tthree\n", "1 0 d1 2\n1 Q0 d2 -1\n").expect("reads");
    assert_eq!((questions.len(), left_out, questions[0].text.as_str()), (1, 1, "one two"));
    assert_eq!(questions[0].gold[1].grade, -1);
}

#[test]
fn a_query_with_irrelevant_judgments_alone_is_unanswerable_and_not_dropped() {
    let (questions, _) = from_trec("1\tone\n", "1 0 d1 0\n").expect("reads");
    assert!(!questions[0].answerable);
}

#[test]
fn what_would_change_a_number_silently_is_an_error() {
    let error = |qrels: &str| from_beir("{\"_id\":\"q\",\"text\":\"?\"}", qrels).expect_err(qrels).message;
    let twice = from_trec("q\tone\nq\ttwo\n", "q 0 d 1\n").expect_err("twice").message;
    assert_eq!(twice, "question \"q\" comes twice");
    assert_eq!(error("h\nq d1 1\n"), "line 2 of the qrels: 1 columns, not 3");
    assert_eq!(error("h\nq\td1\tx\n"), "line 2 of the qrels: the grade is no whole number");
    assert_eq!(error("h\nr\td1\t1\n"), "question \"r\" is judged, but its text is not given");
    assert_eq!(error("h\nq\td\t1\nq\td\t0\n"), "question \"q\" judges one place twice: external id \"d\"");
}
