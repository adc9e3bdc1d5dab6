use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::json::canonical::rfc8785;

fn json(text: &str) -> String {
    let value =
        read(text, YamlSchema::Core, &Limits::default()).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    String::from_utf8(rfc8785::to_vec(&value).unwrap()).unwrap()
}

fn refused(text: &str) -> String {
    let error = read(text, YamlSchema::Core, &Limits::default()).unwrap_err();
    format!("{:?}: {error}", error.defect)
}

fn defect(text: &str) -> Defect {
    read(text, YamlSchema::Core, &Limits::default()).unwrap_err().defect
}

#[test]
fn documents() {
    for (text, expected) in [
        ("a: b", r#"{"a":"b"}"#),
        ("%YAML 1.2\n%TAG !y! tag:yaml.org,2002:\n--- # c\na: !y!int 0x10\n...\n# end\n", r#"{"a":16}"#),
        ("[a: 1, b, {c, d: }, [], {}]", r#"[{"a":1},"b",{"c":null,"d":null},[],{}]"#),
        ("{\"a\":b, 'c':[d], e: {f}}", r#"{"a":"b","c":["d"],"e":{"f":null}}"#),
        ("a:\n- b\n-\n- - c\n  - d: e\n    f:\ng:", r#"{"a":["b",null,["c",{"d":"e","f":null}]],"g":null}"#),
        ("? a\n: b\n? |\n  c\n: d", r#"{"a":"b","c\n":"d"}"#),
        ("a b: c d\n  e # f\ng: h#i", r#"{"a b":"c d e","g":"h#i"}"#),
        ("a: https://x.y/z:1?q=[1]&w={}", r#"{"a":"https://x.y/z:1?q=[1]&w={}"}"#),
        (
            "- 'it''s\n\n  folded'\n- \"a\\\n   b \\u00e9\\x41\\U0001F600\\/\\e\"",
            "[\"it's\\nfolded\",\"ab éA😀/\\u001b\"]",
        ),
        ("- \"\u{feff}\u{7f}\u{2028}\u{85}\"", "[\"\u{feff}\u{7f}\u{2028}\u{85}\"]"),
        ("<<: {a: 1}", r#"{"<<":{"a":1}}"#),
        ("- &a x\n- *a\n- &a [y, *a]\n- *a\n- {*a : 1}", ""),
    ] {
        if expected.is_empty() {
            // A collection cannot be a key, and `*a` within `&a` refers to the earlier anchor only until the parser has
            // seen the new one.
            assert_eq!(defect(text), Defect::Syntax);
        } else {
            assert_eq!(json(text), expected, "{text}");
        }
    }
}

#[test]
fn scalars_follow_their_tags() {
    for (text, expected) in [
        ("[!!str 1, !!str , !!str null, ! 1, ! ~, !!str 'a']", r#"["1","","null","1","~","a"]"#),
        (
            "[!!int 0x1F, !!int '-7', !!float 3, !!float '.5', !!float 9007199254740993]",
            "[31,-7,3,0.5,9007199254740992]",
        ),
        ("[!!bool 'true', !!null '', !!null ~, !!null ]", "[true,null,null,null]"),
        ("!!map {a: !!seq [! [b], ! {c: d}]}", r#"{"a":[["b"],{"c":"d"}]}"#),
        ("[!<tag:yaml.org,2002:int> 1, &a !!str 2, !!str &b 3, *b]", r#"[1,"2","3","3"]"#),
    ] {
        assert_eq!(json(text), expected, "{text}");
    }
    for (text, expected) in [
        ("!!int 1.5", "Syntax: line 1 column 1: \"1.5\" is not a !!int"),
        ("a: !!bool yes", "Syntax: line 1 column 4: \"yes\" is not a !!bool"),
        ("a: !!float 0x1F", "Syntax: line 1 column 4: \"0x1F\" is not a !!float"),
        ("a: !!null x", "Syntax: line 1 column 4: \"x\" is not a !!null"),
        ("a: !!seq x", "Syntax: line 1 column 4: !!seq cannot be applied to a scalar"),
        ("a: !!str [x]", "Syntax: line 1 column 4: !!str cannot be applied to a !!seq"),
    ] {
        assert_eq!(refused(text), expected);
    }
    for tag in ["!x", "!!set", "!!timestamp", "!!binary", "!<x>", "!!merge"] {
        for node in ["x", "{a: b}", "[a]"] {
            let message = refused(&format!("a: {tag} {node}"));
            assert!(message.contains("is not supported; only !!str"), "{message}");
        }
    }
}

#[test]
fn block_scalars_end_as_the_text_does() {
    for (text, expected) in [
        ("- |\n  a\n", "a\n"),
        ("- |\n  a", "a"),
        ("- |\n  a\n  ", "a\n"),
        ("- |\n  a\n\n", "a\n"),
        ("- |-\n  a", "a"),
        ("- |-\n  a\n", "a"),
        ("- |+\n  a", "a"),
        ("- |+\n  a\n", "a\n"),
        ("- |+\n  a\n  ", "a\n"),
        ("- |+\n  a\n\n", "a\n\n"),
        ("- >\n  a\n  b", "a b"),
        ("- >\n  a\n  b\n", "a b\n"),
        ("- |\n  a é", "a é"),
        ("- |\r\n  a\r\n  b\r\n", "a\nb\n"),
        ("- |\r\n  a\r\n  b", "a\nb"),
        ("- |\n  a\n# c", "a\n"),
        ("- |", ""),
        ("- |+\n\n", "\n"),
        ("- |2\n    a\n", "  a\n"),
        ("- >\n\n  a\n   b\n  c\n\n\n  d\n", "\na\n b\nc\n\nd\n"),
    ] {
        let value = read(text, YamlSchema::Core, &Limits::default()).unwrap();
        let content = value.as_array().unwrap().first().and_then(Value::as_str);
        assert_eq!(content, Some(expected), "{text:?}");
    }
}

#[test]
fn what_is_refused_is_named_with_its_place() {
    for (text, expected) in [
        ("", "Syntax: line 1 column 1: there is no document"),
        ("# c\n", "Syntax: line 2 column 1: there is no document"),
        (
            "a: 1\n---\nb: 2",
            "Syntax: line 2 column 1: a second document begins here; the file must be a single document",
        ),
        ("é: {a: 1, 'a' : 2}", "DuplicateKey: line 1 column 11: the mapping already has a key \"a\""),
        ("a: 1\n\"\\x61\": 2", "DuplicateKey: line 2 column 1: the mapping already has a key \"a\""),
        ("&k a: 1\n*k : 2", "DuplicateKey: line 2 column 1: the mapping already has a key \"a\""),
        (
            "1: a",
            "Syntax: line 1 column 1: a key must be a string, not a number; quote it to make it a string",
        ),
        ("~: a", "Syntax: line 1 column 1: a key must be a string, not null; quote it to make it a string"),
        (
            "{[a]: b}",
            "Syntax: line 1 column 2: a key must be a string, not a collection; quote it to make it a string",
        ),
        ("{: b}", "Syntax: line 1 column 2: a key must be a string, not null; quote it to make it a string"),
        (
            "a: &a\n  b: *a",
            "Syntax: line 2 column 6: the alias refers to a collection that contains it; write out the intended value",
        ),
        ("a: *b", "Syntax: line 1 column 4: while parsing node, found unknown anchor"),
        (
            "a: \u{1}",
            "Syntax: line 1 column 4: control character U+0001 is not allowed in YAML; escape it in double quotes",
        ),
        ("a: x\u{9f}", "Syntax: line 1 column 4: character U+009F is allowed in quotes only"),
        ("[|]", "Syntax: line 1 column 2: \"|\" must be quoted here, it begins with an indicator"),
        ("[>a]", "Syntax: line 1 column 2: \">a\" must be quoted here, it begins with an indicator"),
        ("[?]", "Syntax: line 1 column 2: \"?\" must be quoted here, it begins with an indicator"),
        (
            "# c\n%YAML 1.1\n---\na: b",
            "Syntax: line 2 column 1: contracts must be YAML 1.2, but this declares \"1.1\"",
        ),
    ] {
        assert_eq!(refused(text), expected);
    }
    let number = format!("a: {}", "1".repeat(4_301));
    assert_eq!(refused(&number), "Number: line 1 column 4: the number has more than 4300 digits, the limit");
}

/// Each of these is an error in YAML 1.2.
#[test]
fn bad_syntax_is_refused() {
    for text in [
        "a: b: c",
        "a: - b",
        "- a\nb",
        "a\nb: c",
        "a:\n\t- b",
        "a: 'b",
        "a: \"b\\q\"",
        "a: \"\\ud83d\\ude00\"",
        "[a",
        "{a: b",
        "a: }",
        "[a, , b]",
        "[,]",
        "a: @b",
        "a: `b`",
        "a: %b",
        "a: \"b\" c",
        "a: [b] c",
        "a: b\n c: d",
        "a: |x\n b",
        "a: &b *c",
        "a: !!str *b",
        "a: &b &c d",
        "a: !!str !!int 1",
        "a: !h!x y",
        "a\n---\nb\n...\nc",
        "a: b\n...\nc: d",
        "a: \"b\n---\nc\"",
        "a: [b\n---\n]",
        "a: \"b\nc\"",
        "a: [b,#c\n]",
        "a: \u{feff}",
        "a: b\n%TAG ! x\n---\nc: d",
        "? a\n  b: c",
        "a: \0",
        "--- a: b\n",
        "\u{feff}a: [\u{feff}]",
        "\ta: b",
        "a:\n \tb: c",
        "a:\n  \tb: c",
        "a:\r \t- b",
        "é:\r\n \t- b",
        "-\ta: b",
        "- \ta: b",
        "- - \ta: b",
        "? \ta: b",
    ] {
        assert_eq!(defect(text), Defect::Syntax, "{text:?}");
    }
}

#[test]
fn tabs_are_accepted_where_they_are_not_indentation() {
    for (text, expected) in [
        ("a: \tb", r#"{"a":"b"}"#),
        ("a:\t[b,\tc]", r#"{"a":["b","c"]}"#),
        ("a:\t\n  - b\t# c\n\t\n", r#"{"a":["b"]}"#),
        ("a\t: b\nc: \"d\te\"", r#"{"a":"b","c":"d\te"}"#),
        ("a: [\n  \tb: [c],\n  \t{d: e}]", r#"{"a":[{"b":["c"]},{"d":"e"}]}"#),
        ("a: !!seq [\n  \tb: c]", r#"{"a":[{"b":"c"}]}"#),
        ("a: &x\t\n  b: |\n    c\n    \td\n", r#"{"a":{"b":"c\n\td\n"}}"#),
        ("# a\tb\n---\ta\n", r#""a""#),
        ("a:\n  \t&x\n  b: c", r#"{"a":{"b":"c"}}"#),
    ] {
        assert_eq!(json(text), expected, "{text}");
    }
}

#[test]
fn deep_nesting_ends_at_the_limit() {
    let flow = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let lines = |levels: usize| {
        let lines: Vec<String> = (0..levels).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        lines.concat()
    };
    let limits = Limits::default();
    for (fits, too_deep) in [
        (flow(128), flow(129)),
        ("- ".repeat(128), "- ".repeat(129)),
        (format!("{}x: y", "- ".repeat(127)), format!("{}x: y", "- ".repeat(128))),
        (lines(128), lines(129)),
        (format!("a: &a {}\nb: [*a]", flow(126)), format!("a: &a {}\nb: [*a]", flow(127))),
    ] {
        assert!(read(&fits, YamlSchema::Core, &limits).is_ok(), "{fits}");
        assert_eq!(defect(&too_deep), Defect::TooDeep, "{too_deep}");
    }
    for text in [
        flow(10_000),
        flow(256),
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "[a: ".repeat(100_000),
        "- ".repeat(1_000_000),
        "? ".repeat(100_000),
        "? - ".repeat(100_000),
        lines(2_000),
    ] {
        assert!(matches!(defect(&text), Defect::TooDeep | Defect::Syntax));
    }
    assert_eq!(defect(&"a: ".repeat(1_000_000)), Defect::TooLarge);
    assert_eq!(defect(&"a: ".repeat(300_000)), Defect::Syntax);
}

#[test]
fn aliases_count_as_what_they_stand_for() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..40 {
        let alias = format!("*a{}", level - 1);
        let _ = writeln!(bomb, "a{level}: &a{level} [{}]", vec![alias; 10].join(", "));
    }
    assert!(refused(&bomb).starts_with("TooLarge: line 7 column"));
    assert_eq!(defect(&bomb), Defect::TooLarge);
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), vec!["*a"; 300].join(", "));
    assert!(refused(&long).contains("with aliases expanded, the document has more than 268435456 bytes"));
    let limits = Limits { values: 7, ..Limits::default() };
    // The root, the list and its two elements, then the copy.
    assert!(read("a: &a [b, c]\nd: *a", YamlSchema::Core, &limits).is_ok());
    assert_eq!(
        read("a: &a [b, c]\nd: *a\ne: f", YamlSchema::Core, &limits).unwrap_err().defect,
        Defect::TooLarge
    );
    assert_eq!(json("a: &a [b, c]\nd: {e: *a}"), r#"{"a":["b","c"],"d":{"e":["b","c"]}}"#);
}

#[test]
fn many_pieces_are_refused_before_the_parser_keeps_them() {
    assert_eq!(defect(&format!("[{}]", "a,".repeat(1_000_000))), Defect::TooLarge);
    let text = format!("{{a: [{}]}}", "a,".repeat(400_000));
    assert!(read(&text, YamlSchema::Core, &Limits::default()).is_ok());
    // Keys are inserted into the parser's buffer; that must not become quadratic.
    let nested = format!("{}{}{}", "[".repeat(250), "a,".repeat(400_000), "]: b]".repeat(125));
    defect(&nested);
}

#[test]
fn many_pieces_of_recordings_are_read_a_value_at_a_time() {
    let read = |text: &str| read(text, YamlSchema::Text, &Limits::default());
    let words = "w ".repeat(600_000);
    for name in ["vcr.yaml", "vcr-encoded.yaml"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let long = format!("# {words}\n{text}\n# {words}\n");
        assert_eq!(read(&long).unwrap(), read(&text).unwrap(), "{name}");
    }
    let list = "c, ".repeat(300_000);
    assert!(
        read(&format!("a: [{list}]\nb: [{list}]\nc: \"{words}\"\nd: {words}\ne: |\n  {words}\n")).is_ok()
    );
    for text in [
        format!("[{list}{list}]"),
        format!("- {{a: [{list}],\n b: [{list}]}}"),
        format!("a: \"{words}{words}\""),
        format!("a: |\n  {words}{words}"),
    ] {
        let error = read(&text).err().unwrap();
        assert_eq!(error.defect, Defect::TooLarge, "{error}");
        assert!(error.message.contains(" in one value, the limit"), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(pieces in prop::collection::vec(prop::sample::select(vec![
        "a", "b:", ": ", ":", "- ", "-", "? ", "?", "\n", "\n ", "\n  ", "\r", "\t", " ", "[", "]", "{", "}", ",", "\"", "'", "|",
        ">", "|2-\n", "&a ", "*a", "! ", "!!str ", "!<", "%TAG ! x\n", "%YAML 1.2\n", "---", "...", "\n--- ", "\n...\n", "#", " #", "\\",
        "\\x4", "~", "0x1", ".5", "é", "\u{feff}", "\u{85}",
    ]), 0..24)) {
        let _ = read(&pieces.concat(), YamlSchema::Core, &Limits::default());
    }
}

#[test]
fn the_text_schema_keeps_scalars_as_they_are() {
    let text = "a: 1e5\nb: null\nc: 'null'\nd: !!binary |\n  aGk=\ne: !!python/unicode 'x'\nf: !!python/tuple [0o17, yes]\n";
    let value = read(text, YamlSchema::Text, &Limits::default()).unwrap();
    let value = String::from_utf8(rfc8785::to_vec(&value).unwrap()).unwrap();
    assert_eq!(
        value,
        r#"{"a":"1e5","b":null,"c":"null","d":{"!!binary":"aGk=\n"},"e":"x","f":["0o17","yes"]}"#
    );
    for text in ["a: !!python/object:x.Y {}", "a: !!python/tuple b", "a: !!other b"] {
        assert_eq!(
            read(text, YamlSchema::Text, &Limits::default()).unwrap_err().defect,
            Defect::Syntax,
            "{text}"
        );
        assert_eq!(defect(&text.replace("other", "binary")), Defect::Syntax);
    }
}
