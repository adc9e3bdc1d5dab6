//! Filters and orders.

use super::kinds::{TestDocument, core, folder, note, sheet};
use super::{TestVault, digest, second, unknown};
use crate::artifact::SignatureState::{Unchecked, Verified};
use crate::artifact::{ArtifactLocation, CREATED_AT, FINISHED_AT, SignatureName};
use crate::digest::CoreHash;
use crate::storage::TimeBasis::{Created, Finished, FirstSeen, LastSeen};
use crate::storage::interface::{
    Annotation, Condition, Filter, Match, Order, Page, TimePeriod, ValueCount, ValueCounts,
};

fn only(condition: Condition) -> Filter {
    Filter { conditions: vec![condition], ..Filter::default() }
}

fn mention(group: Option<&str>, text: &str) -> Condition {
    Condition::Mention { group: group.map(str::to_owned), digest: digest(text) }
}

fn attribute(name: &str, value: &str) -> Condition {
    Condition::Attribute { name: name.to_owned(), value: value.to_owned() }
}

fn sorted(mut cores: Vec<CoreHash>) -> Vec<CoreHash> {
    cores.sort_unstable();
    cores
}

fn expect(vault: &TestVault, filter: &Filter, expected: &[CoreHash]) {
    let expected = sorted(expected.to_vec());
    assert_eq!(vault.found(filter, Order::Core), expected, "{filter:?}");
    assert_eq!(vault.snapshot().count(filter).unwrap(), expected.len() as u64, "{filter:?}");
}

pub(super) fn an_empty_filter_matches_everything(vault: &TestVault) {
    expect(vault, &Filter::default(), &[]);
    let one = vault.add_note(&TestDocument::new("a"));
    let other = vault.add(TestDocument::new("a").admit(sheet()));
    expect(vault, &Filter::default(), &[one, other]);
    let of_kind = |kinds: &[&str]| Filter {
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        ..Filter::default()
    };
    expect(vault, &of_kind(&["note"]), &[one]);
    expect(vault, &of_kind(&["sheet", "note"]), &[one, other]);
    expect(vault, &of_kind(&["folder"]), &[]);
}

pub(super) fn every_condition_selects_its_artifacts(vault: &TestVault) {
    let a = TestDocument::new("a")
        .mention("prompt", 0, digest("p"))
        .attribute("model", "m")
        .signed(Verified, "k");
    let b = TestDocument::new("b")
        .mention("response", 0, digest("p"))
        .attribute("model", "n")
        .signed(Unchecked, "k");
    let (a, b) = (vault.add_note(&a), vault.add_note(&b));
    let c = vault.add_note(&TestDocument::new("c").attribute("id", "m"));
    let signature = |state, key_id: Option<&str>| {
        only(Condition::Signature {
            state: SignatureName::from(Some(state)),
            key_id: key_id.map(str::to_owned),
        })
    };
    vault.annotate(&Annotation::SetTag { core: a, name: "best" }).unwrap();
    vault.annotate(&Annotation::SetNote { core: b, text: Some("a strange answer") }).unwrap();
    vault.annotate(&Annotation::Pin { core: c, note: None }).unwrap();
    expect(vault, &only(mention(None, "p")), &[a, b]);
    expect(vault, &only(mention(Some("prompt"), "p")), &[a]);
    expect(vault, &only(mention(Some("history"), "p")), &[]);
    expect(vault, &only(attribute("model", "m")), &[a]);
    expect(vault, &only(attribute("model", "M")), &[]);
    let like = |name: &str, pattern: &str| {
        only(Condition::AttributeLike { name: name.to_owned(), pattern: pattern.to_owned() })
    };
    expect(vault, &like("model", "*"), &[a, b]);
    expect(vault, &like("model", "m*"), &[a]);
    expect(vault, &like("model", "_"), &[]);
    expect(vault, &like("name", "*"), &[]);
    expect(vault, &only(Condition::About { digest: digest("p") }), &[a, b]);
    expect(vault, &only(Condition::About { digest: a.0 }), &[a]);
    expect(vault, &signature(Verified, None), &[a]);
    expect(vault, &signature(Verified, Some("k")), &[a]);
    expect(vault, &signature(Unchecked, Some("other")), &[]);
    expect(vault, &only(Condition::Signature { state: SignatureName::Unsigned, key_id: None }), &[c]);
    expect(vault, &only(Condition::Note { text: "strange".to_owned() }), &[b]);
    expect(vault, &only(Condition::Note { text: String::new() }), &[b]);
    expect(vault, &only(Condition::Tagged { name: None }), &[a]);
    expect(vault, &only(Condition::Tagged { name: Some("best".to_owned()) }), &[a]);
    expect(vault, &only(Condition::Tagged { name: Some("bes".to_owned()) }), &[]);
    expect(vault, &only(Condition::Pinned), &[c]);
}

pub(super) fn all_conditions_must_hold(vault: &TestVault) {
    let a = vault.add_note(&TestDocument::new("a").attribute("model", "m").attribute("id", "x"));
    vault.add_note(&TestDocument::new("b").attribute("model", "m"));
    let conditions = vec![attribute("model", "m"), attribute("id", "x")];
    let both = Filter { conditions, ..Filter::default() };
    expect(vault, &both, &[a]);
    let other_kind = Filter { kinds: vec!["sheet".to_owned()], ..both.clone() };
    expect(vault, &other_kind, &[]);
    let never = Filter { conditions: vec![attribute("model", "m"), Condition::Pinned], ..Filter::default() };
    expect(vault, &never, &[]);
}

pub(super) fn matches_are_in_the_order_of_conditions_artifacts_roles_and_places(vault: &TestVault) {
    let document = TestDocument::new("a")
        .mention("response", 2, digest("p"))
        .mention("prompt", 11, digest("p"))
        .mention("prompt", 2, digest("p"))
        .mention("final_response", 3, digest("p"))
        .attribute("model", "m")
        .signed(Verified, "k");
    let core = vault.add_note(&document);
    vault.add_note(&document.clone().remark("another capture"));
    for name in ["z", "b"] {
        vault.annotate(&Annotation::SetTag { core, name }).unwrap();
    }
    let conditions = vec![
        attribute("model", "m"),
        Condition::Tagged { name: None },
        mention(None, "p"),
        Condition::Signature { state: SignatureName::Verified, key_id: None },
    ];
    let filter = Filter { conditions, ..Filter::default() };
    let hit = vault.snapshot().find(&filter, Order::Core, &Page::all()).unwrap().items.remove(0);
    let captures = vault.snapshot().captures(&[core]).unwrap().remove(0);
    let [attribute, b, z, mentions @ .., one, other] = &hit.matches[..] else { panic!("{hit:?}") };
    assert_eq!(*attribute, Match::Attribute { name: "model".to_owned(), value: "m".to_owned() });
    assert_eq!((b, z), (&Match::Tag("b".to_owned()), &Match::Tag("z".to_owned())));
    let places: Vec<(&str, &ArtifactLocation)> = mentions
        .iter()
        .map(|found| match found {
            Match::Mention(mention) => (&*mention.role, &mention.place),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [("final_response", 3), ("prompt", 2), ("prompt", 11), ("response", 2)]
        .map(|(role, at)| (role, ArtifactLocation::Index(at)));
    assert_eq!(places, expected.iter().map(|(role, place)| (*role, place)).collect::<Vec<_>>());
    for (found, capture) in [one, other].into_iter().zip(captures) {
        let signature = capture.signature.unwrap();
        assert_eq!(*found, Match::Signature { capture: capture.capture, signature });
    }
}

pub(super) fn members_match_for_their_containers(vault: &TestVault) {
    let part = TestDocument::new("part").mention("prompt", 0, digest("p")).attribute("model", "m");
    let own = TestDocument::new("folder").mention("prompt", 5, digest("p"));
    let folder_core = vault.add(own.admit_folder(Some(&part), None));
    let part_core = core(note(), "part");
    let direct = only(mention(None, "p"));
    expect(vault, &direct, &[folder_core, part_core]);
    let through = Filter { through_members: true, ..direct };
    let found = vault.snapshot().find(&through, Order::Core, &Page::all()).unwrap().items;
    let hit = found.into_iter().find(|hit| hit.artifact.core == folder_core).unwrap();
    let artifacts: Vec<CoreHash> = hit
        .matches
        .iter()
        .map(|found| match found {
            Match::Mention(mention) => mention.artifact,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(artifacts, sorted(vec![folder_core, part_core]));
    // The kind is that of the artifact, whatever its members are.
    let attribute = only(attribute("model", "m"));
    expect(vault, &attribute, &[part_core]);
    let through = Filter { through_members: true, ..attribute };
    expect(vault, &through, &[folder_core, part_core]);
    let folders = Filter { kinds: vec![folder().name().to_owned()], ..through };
    expect(vault, &folders, &[folder_core]);
}

pub(super) fn periods_include_their_beginning_and_exclude_their_end(vault: &TestVault) {
    let document =
        |name: &str, created: &str| TestDocument::new(name).attribute("created_at", created).admit(note());
    vault.add_at(document("a", "2025-01-01T00:00:00.000Z"), second(0));
    vault.add_at(document("b", "2025-01-02T00:00:00.000Z"), second(1));
    vault.add_at(TestDocument::new("c").admit(note()), second(2));
    vault.add_at(document("a", "2025-01-01T00:00:00.000Z"), second(3));
    // A further capture states another time: the latest counts.
    vault.add_at(document("a", "2025-01-03T00:00:00.000Z"), second(3));
    let [a, b, c] = ["a", "b", "c"].map(|name| core(note(), name));
    let period = |basis, since: Option<&str>, until: Option<&str>| {
        let time = |text: &str| text.parse().unwrap();
        let period = TimePeriod { basis, since: since.map(time), until: until.map(time) };
        Filter { period: Some(period), ..Filter::default() }
    };
    let at = |seconds| second(seconds).to_rfc3339();
    expect(vault, &period(FirstSeen, Some(&at(1)), None), &[b, c]);
    expect(vault, &period(FirstSeen, None, Some(&at(1))), &[a]);
    expect(vault, &period(FirstSeen, Some(&at(1)), Some(&at(2))), &[b]);
    expect(vault, &period(LastSeen, Some(&at(2)), None), &[a, c]);
    expect(vault, &period(LastSeen, Some(&at(4)), None), &[]);
    expect(vault, &period(Created, None, None), &[a, b]);
    expect(vault, &period(Created, Some("2025-01-03T00:00:00Z"), None), &[a]);
    expect(vault, &period(Created, None, Some("2025-01-03T00:00:00Z")), &[b]);
}

pub(super) fn digits_select_by_core_hash(vault: &TestVault) {
    let cores: Vec<CoreHash> =
        (0..40).map(|number| vault.add_note(&TestDocument::new(&format!("n{number}")))).collect();
    let hex = cores[7].0.hex();
    for length in [0, 1, 2, 7, 64] {
        let digits = hex[..length].to_owned();
        let expected: Vec<CoreHash> =
            cores.iter().copied().filter(|core| core.0.hex().starts_with(&digits)).collect();
        expect(vault, &Filter { digits: Some(digits), ..Filter::default() }, &expected);
    }
    for nothing in [unknown().0.hex(), format!("{hex}0"), "xyz".to_owned(), hex.to_uppercase()] {
        expect(vault, &Filter { digits: Some(nothing), ..Filter::default() }, &[]);
    }
}

pub(super) fn notes_are_compared_without_case(vault: &TestVault) {
    let core = vault.add_note(&TestDocument::new("a"));
    vault.annotate(&Annotation::SetNote { core, text: Some("100 % ÄRGER_lich\nI") }).unwrap();
    for text in ["ärger", "100 %", "r_l", "\ni", "ÄRGER_LICH"] {
        expect(vault, &only(Condition::Note { text: text.to_owned() }), &[core]);
    }
    for text in ["100%", "rxl", "%i"] {
        expect(vault, &only(Condition::Note { text: text.to_owned() }), &[]);
    }
}

pub(super) fn orders_are_total(vault: &TestVault) {
    let created = |name: &str, time: Option<&str>| match time {
        Some(time) => TestDocument::new(name).attribute("created_at", time),
        None => TestDocument::new(name),
    };
    let (early, late) = (Some("2025-01-01T00:00:00.000Z"), Some("2026-01-01T00:00:00.000Z"));
    // All at one time, so that only the order of the journal decides.
    let documents = [("a", late), ("b", None), ("c", early), ("d", early), ("e", None)]
        .map(|(name, time)| created(name, time));
    vault.add_all(documents.iter().map(|document| document.admit(note())).collect());
    vault.add_at(created("s", None).admit(sheet()), super::start());
    vault.add_at(documents[2].admit(note()), super::start());
    let [first, undated, third, fourth, last] = ["a", "b", "c", "d", "e"].map(|name| core(note(), name));
    let sheet = core(sheet(), "s");
    let found = |order| vault.found(&Filter::default(), order);
    assert_eq!(found(Order::Newest(FirstSeen)), [sheet, last, fourth, third, undated, first]);
    assert_eq!(found(Order::Newest(LastSeen)), [third, sheet, last, fourth, undated, first]);
    assert_eq!(found(Order::Newest(Created)), [first, third, fourth, sheet, last, undated]);
    assert_eq!(found(Order::Kind), [third, last, fourth, undated, first, sheet]);
    assert_eq!(found(Order::Core), sorted(vec![first, undated, third, fourth, last, sheet]));
}

pub(super) fn artifacts_are_found_by_the_time_of_their_end(vault: &TestVault) {
    let document = |name: &str, created: &str, finished: &str| {
        let day = |day: &str| format!("2026-02-{day}T12:00:00.000Z");
        let document = TestDocument::new(name).attribute(CREATED_AT, &day(created));
        if finished.is_empty() { document } else { document.attribute(FINISHED_AT, &day(finished)) }
    };
    let documents = [
        document("a", "01", "09"),
        document("b", "02", "03"),
        document("c", "03", ""),
        document("d", "04", "05"),
    ];
    let [long, short, open, other] = documents.each_ref().map(|document| vault.add_note(document));
    // Equal times are in the order of arrival.
    let same = vault.add_note(&document("e", "05", "05"));
    let found = |filter: &Filter| vault.found(filter, Order::Newest(Finished));
    assert_eq!(found(&Filter::default()), [long, same, other, short, open]);
    let period = |since: Option<&str>, until: Option<&str>| {
        let time = |text: &str| text.parse().unwrap();
        let period = TimePeriod { basis: Finished, since: since.map(time), until: until.map(time) };
        Filter { period: Some(period), ..Filter::default() }
    };
    let fifth = Some("2026-02-05T12:00:00.000Z");
    assert_eq!(found(&period(None, None)), [long, same, other, short]);
    assert_eq!(found(&period(fifth, None)), [long, same, other]);
    assert_eq!(found(&period(None, fifth)), [short]);
    let by_creation = vault.found(&period(fifth, None), Order::Newest(Created));
    assert_eq!(by_creation, [same, other, long]);
    // Pages continue where the previous one ended.
    let (mut all, mut page) = (Vec::new(), Page::first(2));
    loop {
        let paged = vault.snapshot().find(&Filter::default(), Order::Newest(Finished), &page).unwrap();
        all.extend(paged.items.iter().map(|hit| hit.artifact.core));
        page.after = paged.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!(all, [long, same, other, short, open]);
    // A further capture that ended later moves the artifact.
    let later = TestDocument::new("b").attribute(FINISHED_AT, "2026-02-10T12:00:00.000Z");
    vault.add_at(later.admit(note()), second(1));
    assert_eq!(found(&Filter::default()), [short, long, same, other, open]);
    let days = vault.snapshot().count_by_day(&period(fifth, None), Finished).unwrap();
    let days: Vec<(String, u64)> = days.into_iter().map(|(date, count)| (date.to_string(), count)).collect();
    let expected = [("2026-02-05", 2), ("2026-02-09", 1), ("2026-02-10", 1)];
    assert_eq!(days, expected.map(|(date, count)| (date.to_owned(), count)));
    let of_created = vault.snapshot().count_by_day(&period(fifth, None), Created).unwrap();
    assert_eq!(of_created.iter().map(|(_, count)| count).sum::<u64>(), 4);
}

pub(super) fn attributes_are_ordered_and_compared_by_number(vault: &TestVault) {
    let tokens = |name: &str, tokens: &[&str]| {
        let document = TestDocument::new(name);
        tokens.iter().fold(document, |document, count| document.attribute("tokens", count))
    };
    let documents = [
        tokens("a", &["9"]),
        tokens("b", &["10"]),
        tokens("c", &[]),
        tokens("d", &["10"]),
        // Not a count, and so without a number.
        tokens("e", &["many"]),
        // Several values: the largest counts.
        tokens("f", &["8", "100"]),
    ];
    let [nine, ten, without, again, text, two] =
        documents.each_ref().map(|document| vault.add_note(document));
    let found = |filter: &Filter| vault.found(filter, Order::Largest("tokens"));
    assert_eq!(found(&Filter::default()), [two, again, ten, nine, text, without]);
    // Nothing has numbers for a text.
    assert_eq!(
        vault.found(&Filter::default(), Order::Largest("model")),
        [two, text, again, without, ten, nine]
    );
    let range = |least, most| only(Condition::Range { name: "tokens".to_owned(), least, most });
    assert_eq!(found(&range(Some(10), None)), [two, again, ten]);
    expect(vault, &range(Some(10), Some(10)), &[ten, again]);
    expect(vault, &range(None, Some(9)), &[nine, two]);
    expect(vault, &range(None, None), &[nine, ten, again, two]);
    expect(vault, &range(Some(11), Some(99)), &[]);
    let other = Condition::Range { name: "model".to_owned(), least: None, most: None };
    expect(vault, &only(other), &[]);
    let hits = vault.snapshot().find(&range(None, None), Order::Largest("tokens"), &Page::first(1)).unwrap();
    let values: Vec<&str> = hits.items[0]
        .matches
        .iter()
        .map(|found| match found {
            Match::Attribute { name, value } if name == "tokens" => value.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(values, ["8", "100"]);
    let numbers: Vec<Option<i64>> =
        vault.snapshot().attributes_of(text).unwrap().into_iter().map(|attribute| attribute.number).collect();
    assert_eq!(numbers, [None]);
    // So does that of another capture.
    vault.add_note(&documents[0].clone().attribute("tokens", "1000"));
    assert_eq!(found(&Filter::default()), [nine, two, again, ten, text, without]);
}

/// Enough artifacts that an engine does not read all that match a condition.
pub(super) fn pages_of_many_artifacts_are_parts_of_all(vault: &TestVault) {
    const MANY: usize = 4_500;
    let document = |number: usize| {
        let document = TestDocument::new(&number.to_string())
            .mention("prompt", 0, digest("p"))
            .attribute("model", ["m", "n"][number % 2])
            .attribute("tokens", &(number % 300).to_string());
        let document = if number.is_multiple_of(3) { document.attribute("tokens", "7") } else { document };
        let time = format!("2026-01-{:02}T00:00:00.000Z", number % 28 + 1);
        if number.is_multiple_of(5) { document } else { document.attribute("created_at", &time) }
    };
    let documents = (0..MANY).map(document);
    vault.add_all(documents.map(|document| document.admit(note())).collect());
    let rare: Vec<CoreHash> = (0..40).map(|number| core(note(), &(number * 99).to_string())).collect();
    let labels = [("k".to_owned(), "v".to_owned())].into();
    vault.annotate(&Annotation::SetLabels { cores: &rare, labels: &labels }).unwrap();
    let label = Condition::Label { key: "k".to_owned(), value: Some("v".to_owned()) };
    let tokens = |least| Condition::Range { name: "tokens".to_owned(), least: Some(least), most: None };
    let conditions = [
        vec![],
        vec![attribute("model", "m")],
        vec![attribute("model", "n"), mention(Some("prompt"), "p")],
        vec![mention(None, "p"), label],
        vec![tokens(0), attribute("model", "m")],
        vec![tokens(298), mention(None, "p")],
        vec![tokens(8), Condition::Signature { state: SignatureName::Unsigned, key_id: None }],
    ];
    let times = [FirstSeen, LastSeen, Created].map(Order::Newest);
    let orders = times.into_iter().chain([Order::Core, Order::Kind, Order::Largest("tokens")]);
    let snapshot = vault.snapshot();
    for conditions in conditions {
        let filter = Filter { conditions, ..Filter::default() };
        for order in orders.clone() {
            let all = snapshot.find(&filter, order, &Page::all()).unwrap().items;
            assert_eq!(all.len() as u64, snapshot.count(&filter).unwrap());
            let (mut page, mut read) = (Page::first(7), Vec::new());
            // The first pages, and larger ones to the end.
            for limit in [7, 300, 1_000].into_iter().chain(std::iter::repeat(MANY)) {
                page.limit = limit;
                let found = snapshot.find(&filter, order, &page).unwrap();
                read.extend(found.items);
                page.after = found.next;
                if page.after.is_none() {
                    break;
                }
            }
            assert!(all == read, "{filter:?} {order:?}");
        }
    }
}

pub(super) fn artifacts_can_be_selected_by_core_hash(vault: &TestVault) {
    let [a, b, c] =
        ["a", "b", "c"].map(|name| vault.add_note(&TestDocument::new(name).attribute("model", name)));
    let among = |cores: &[CoreHash]| Filter { among: Some(cores.to_vec()), ..Filter::default() };
    expect(vault, &among(&[]), &[]);
    expect(vault, &among(&[c, a, a]), &[a, c]);
    expect(vault, &among(&[b, unknown()]), &[b]);
    let conditions = vec![attribute("model", "b")];
    expect(vault, &Filter { conditions: conditions.clone(), ..among(&[a, b]) }, &[b]);
    expect(vault, &Filter { conditions, ..among(&[a, c]) }, &[]);
    expect(vault, &Filter { kinds: vec!["sheet".to_owned()], ..among(&[a]) }, &[]);
    expect(vault, &Filter { digits: Some(b.0.hex()[..20].to_owned()), ..among(&[a, b]) }, &[b]);
    let first = vault.snapshot().find(&among(&[a, b, c]), Order::default(), &Page::first(2)).unwrap();
    assert_eq!(first.items.iter().map(|hit| hit.artifact.core).collect::<Vec<_>>(), [c, b]);
    let page = Page { limit: 2, after: first.next };
    let rest = vault.snapshot().find(&among(&[a, b, c]), Order::default(), &page).unwrap();
    assert_eq!(rest.items.iter().map(|hit| hit.artifact.core).collect::<Vec<_>>(), [a]);
}

pub(super) fn matching_artifacts_are_counted_by_day(vault: &TestVault) {
    let day = 24 * 60 * 60;
    let counted = |filter: &Filter, by| -> Vec<(String, u64)> {
        let counted = vault.snapshot().count_by_day(filter, by).unwrap();
        counted.into_iter().map(|(date, count)| (date.to_string(), count)).collect()
    };
    let days = |days: &[(&str, u64)]| -> Vec<(String, u64)> {
        days.iter().map(|(date, count)| ((*date).to_owned(), *count)).collect()
    };
    assert_eq!(counted(&Filter::default(), Created), []);
    let created = |name, at| TestDocument::new(name).attribute(CREATED_AT, at).attribute("model", "m");
    let late = created("late", "2026-02-01T23:59:59.999Z");
    vault.add_note(&late);
    vault.add_note(&created("old", "1969-12-31T12:00:00.000Z"));
    vault.add_note(&created("next", "2026-02-02T00:00:00.000Z"));
    let other = TestDocument::new("sheet").attribute(CREATED_AT, "2026-02-01T00:00:00.000Z");
    vault.add(other.admit(sheet()));
    vault.add_at(TestDocument::new("undated").admit(note()), second(day));
    // The latest of the times of an artifact counts.
    let later = late.remark("more").attribute(CREATED_AT, "2026-02-03T01:00:00.000Z");
    vault.add_at(later.admit(note()), second(2 * day));
    let all = days(&[("1969-12-31", 1), ("2026-02-01", 1), ("2026-02-02", 1), ("2026-02-03", 1)]);
    assert_eq!(counted(&Filter::default(), Created), all);
    assert_eq!(counted(&Filter::default(), FirstSeen), days(&[("2026-03-01", 4), ("2026-03-02", 1)]));
    let seen = days(&[("2026-03-01", 3), ("2026-03-02", 1), ("2026-03-03", 1)]);
    assert_eq!(counted(&Filter::default(), LastSeen), seen);
    let notes = Filter { kinds: vec!["note".to_owned()], ..Filter::default() };
    let of_notes = days(&[("1969-12-31", 1), ("2026-02-02", 1), ("2026-02-03", 1)]);
    assert_eq!(counted(&notes, Created), of_notes);
    assert_eq!(counted(&only(attribute("model", "m")), Created), of_notes);
    assert_eq!(counted(&only(attribute("model", "n")), Created), []);
    let time = |text: &str| Some(text.parse().unwrap());
    let period = TimePeriod {
        basis: Created,
        since: time("2026-02-01T00:00:00.000Z"),
        until: time("2026-02-03T00:00:00.000Z"),
    };
    let within = Filter { period: Some(period), ..Filter::default() };
    assert_eq!(counted(&within, Created), days(&[("2026-02-01", 1), ("2026-02-02", 1)]));
    assert_eq!(counted(&within, FirstSeen), days(&[("2026-03-01", 2)]));
    let period = TimePeriod { basis: LastSeen, since: Some(second(day)), until: None };
    let seen = Filter { period: Some(period), ..Filter::default() };
    assert_eq!(counted(&seen, Created), days(&[("2026-02-03", 1)]));
}

pub(super) fn matching_artifacts_are_counted_by_value(vault: &TestVault) {
    let names = ["model", "errors", "none"].map(str::to_owned);
    let texts = |counts: Vec<ValueCount>| -> Vec<String> {
        let text = |count: ValueCount| format!("{}={} {}", count.name, count.value, count.artifacts);
        counts.into_iter().map(text).collect()
    };
    let counted = |filter: &Filter| {
        let ValueCounts { attributes, labels } = vault.snapshot().count_by_value(filter, &names).unwrap();
        (texts(attributes), texts(labels))
    };
    assert_eq!(counted(&Filter::default()), (Vec::new(), Vec::new()));
    let document = |name| TestDocument::new(name).attribute("model", "m").attribute("id", name);
    let two = document("two").attribute("model", "n").mention("prompt", 0, digest("p"));
    let [one, two] = [document("one"), two].map(|document| vault.add_note(&document));
    // Several captures of an artifact have a value once.
    vault.add_note(&document("one").remark("again").attribute("errors", "10"));
    let sheet = vault.add(document("sheet").attribute("errors", "9").admit(sheet()));
    for (cores, key, value) in [(&[one, two][..], "k", "v"), (&[sheet], "k", "w"), (&[sheet], "a", "")] {
        let labels = [(key.to_owned(), value.to_owned())].into();
        vault.annotate(&Annotation::SetLabels { cores, labels: &labels }).unwrap();
    }
    let expected = |attributes: &[&str], labels: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        (owned(attributes), owned(labels))
    };
    let all = expected(&["errors=10 1", "errors=9 1", "model=m 3", "model=n 1"], &["a= 1", "k=v 2", "k=w 1"]);
    assert_eq!(counted(&Filter::default()), all);
    let notes = Filter { kinds: vec!["note".to_owned()], ..Filter::default() };
    assert_eq!(counted(&notes), expected(&["errors=10 1", "model=m 2", "model=n 1"], &["k=v 2"]));
    let two = expected(&["model=m 1", "model=n 1"], &["k=v 1"]);
    assert_eq!(counted(&only(mention(None, "p"))), two);
    assert_eq!(counted(&only(attribute("model", "n"))), two);
    let among = Filter { among: Some(vec![sheet, unknown()]), ..Filter::default() };
    assert_eq!(counted(&among), expected(&["errors=9 1", "model=m 1"], &["a= 1", "k=w 1"]));
    assert_eq!(counted(&only(attribute("model", "none"))), (Vec::new(), Vec::new()));
}
