//! `bringup status --json` against its JSON Schema, `assets/status.schema.json`: what the console says is what the schema says, and what is not is refused.

#![expect(clippy::expect_used, reason = "a test that did not get what it needs says what")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../frames/build.rs"]
#[expect(dead_code, reason = "made for the frames, of which this test draws none")]
mod build;
mod check;
mod states;

use std::collections::BTreeSet;

use bringup::report::status::status;
use serde_json::{Value, json};

use check::{Checker, schema};

/// A step into a document: a key or a place in a list.
type Way = Vec<String>;

/// Every value of a document with its way.
fn places(value: &Value, way: &Way, found: &mut Vec<Way>) {
    let mut into = |step: String, inner: &Value| {
        let mut longer = way.clone();
        longer.push(step);
        found.push(longer.clone());
        places(inner, &longer, found);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| into(key.clone(), inner)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(n, inner)| into(n.to_string(), inner)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn pointer(way: &[String]) -> String {
    way.iter()
        .map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")))
        .collect()
}

/// The document with the object or list at this way changed.
fn changed(document: &Value, way: &[String], change: impl FnOnce(&mut Value)) -> Value {
    let mut other = document.clone();
    change(other.pointer_mut(&pointer(way)).unwrap());
    other
}

fn whole() -> Value {
    status(&states::whole(), build::NOW)
}

#[test]
fn the_schema_is_a_schema_of_2020_12_in_which_every_object_is_closed_and_every_property_is_described() {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema));
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let mut all = vec![Way::new()];
    places(&schema, &Way::new(), &mut all);
    for way in all {
        let value = schema.pointer(&pointer(&way)).unwrap();
        if value["type"] == "object" {
            assert_eq!(value["additionalProperties"], false, "{way:?} is open");
            assert!(value["description"].is_string(), "{way:?} is not described");
            for (name, property) in value["properties"].as_object().unwrap() {
                let described = property["description"].is_string() || property["$ref"].is_string() || name == "value";
                assert!(described, "{name} of {way:?} is not described");
            }
        }
    }
}

#[test]
fn what_the_console_says_at_every_moment_is_what_the_schema_says() {
    let checker = Checker::new();
    for (name, state) in states::all() {
        checker.demand(name, &status(&state, build::NOW));
    }
}

/// Each object that tells what it does not know, with the document's name.
fn telling(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(map) => {
            if map.contains_key("absent") {
                found.push(value.clone());
            }
            map.values().for_each(|inner| telling(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| telling(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn what_is_not_known_of_a_nodes_readings_is_null_with_its_reason_and_nothing_else_has_one() {
    let (mut objects, mut unknown) = (0, 0);
    for (name, state) in states::all() {
        let mut found = Vec::new();
        telling(&status(&state, build::NOW), &mut found);
        for object in &found {
            objects += 1;
            let map = object.as_object().unwrap();
            let said: BTreeSet<&str> = object["absent"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|a| a["key"].as_str())
                .collect();
            // The reason of a list is null where there is no reason for one.
            let null = map
                .iter()
                .filter(|(key, value)| value.is_null() && !key.ends_with("_reason"));
            let null: BTreeSet<&str> = null.map(|(key, _)| key.as_str()).collect();
            assert_eq!(said, null, "{name}: {object:#}");
            unknown += null.len();
        }
    }
    assert!(objects > 20 && unknown > 20, "{objects} {unknown}");
    // Each of those that may know nothing of something says so.
    let documents: Vec<Value> = states::all()
        .iter()
        .map(|(_, state)| status(state, build::NOW))
        .collect();
    for way in [
        "/load",
        "/load/verdict",
        "/nodes/0/load",
        "/nodes/0/container/value",
        "/nodes/0/image/value",
        "/ray/value",
        "/ray/value/nodes/0",
        "/ray/expected/0",
        "/ray/sources/0",
    ] {
        let there: Vec<&Value> = documents
            .iter()
            .filter_map(|d| d.pointer(way).filter(|o| o.is_object()))
            .collect();
        let says = there.iter().all(|object| object["absent"].is_array());
        assert!(!there.is_empty() && says, "{way}");
    }
}

#[test]
fn the_schema_has_no_key_that_the_console_never_says() {
    let (mut said, mut known) = (BTreeSet::new(), BTreeSet::new());
    for (_, state) in states::all() {
        let mut found = Vec::new();
        places(&status(&state, build::NOW), &Way::new(), &mut found);
        said.extend(found.into_iter().filter_map(|way| way.last().cloned()));
    }
    let schema = schema();
    let mut found = vec![Way::new()];
    places(&schema, &Way::new(), &mut found);
    for way in found {
        let properties = &schema.pointer(&pointer(&way)).unwrap()["properties"];
        known.extend(properties.as_object().into_iter().flat_map(|map| map.keys().cloned()));
    }
    let never: Vec<&String> = known.difference(&said).collect();
    assert!(never.is_empty(), "{never:?}");
}

#[test]
fn a_missing_key_an_unknown_key_and_a_value_of_another_type_are_refused() {
    let (checker, document) = (Checker::new(), whole());
    checker.demand("whole", &document);
    let mut all = vec![Way::new()];
    places(&document, &Way::new(), &mut all);
    assert!(all.len() > 200, "the document says little: {document:#}");
    for way in all {
        let value = document.pointer(&pointer(&way)).unwrap();
        if let Value::Object(_) = value {
            let more = changed(&document, &way, |v| v["unheard_of"] = json!(1));
            assert!(!checker.0.is_valid(&more), "an unknown key in {way:?}");
        }
        let Some((key, outer)) = way.split_last() else { continue };
        let of_list = document.pointer(&pointer(outer)).unwrap().is_array();
        if !of_list {
            let less = changed(&document, outer, |v| {
                v.as_object_mut().unwrap().remove(key);
            });
            assert!(!checker.0.is_valid(&less), "without {way:?}");
        }
        let other = match value {
            Value::Number(_) => json!("3 GiB"),
            // Null may stand for a number or a word.
            Value::Null => json!(["x"]),
            Value::Bool(_) | Value::String(_) | Value::Object(_) | Value::Array(_) => json!(7.5),
        };
        let other = changed(&document, &way, |v| *v = other);
        assert!(!checker.0.is_valid(&other), "another type at {way:?}");
    }
}

#[test]
fn a_reading_without_its_age_its_source_or_its_reason_is_refused() {
    let (checker, document) = (Checker::new(), whole());
    let with = |way: &str, value: Value| {
        let mut other = document.clone();
        *other.pointer_mut(way).unwrap() = value;
        checker.0.is_valid(&other)
    };
    let way = "/server/generated_tokens";
    assert!(with(
        way,
        json!({ "value": 0.0, "age_s": 1.0, "stale": false, "source": "metrics" })
    ));
    assert!(with(
        way,
        json!({ "value": null, "reason": "not exported", "stale": false, "source": "metrics" })
    ));
    for wrong in [
        json!(0.0),
        json!({ "value": 0.0, "stale": false, "source": "metrics" }),
        json!({ "value": 0.0, "age_s": 1.0, "source": "metrics" }),
        json!({ "value": 0.0, "age_s": 1.0, "stale": false }),
        json!({ "value": 0.0, "age_s": 1.0, "stale": false, "source": "hearsay" }),
        json!({ "value": 0.0, "age_s": 1.0, "reason": "both", "stale": false, "source": "metrics" }),
        json!({ "value": null, "age_s": 1.0, "stale": false, "source": "metrics" }),
        json!({ "value": null, "stale": false, "source": "metrics" }),
        json!({ "value": 0.0, "reason": "a value all the same", "stale": false, "source": "metrics" }),
        json!({ "value": -1.0, "age_s": 1.0, "stale": false, "source": "metrics" }),
    ] {
        assert!(!with(way, wrong.clone()), "{wrong}");
    }
    // That a container is not there is known.
    let none = json!({ "value": null, "age_s": 1.0, "stale": false, "source": "docker" });
    assert!(with("/nodes/0/container", none.clone()));
    assert!(!with("/nodes/0/memory", none));
}

#[test]
fn the_earlier_loads_that_are_counted_are_those_that_the_time_left_rests_on() {
    use bringup::domain::Wall;
    use bringup::domain::load::{EarlierLoad, Stage};
    let mut state = build::loading(build::example());
    let load = |ended, weights| EarlierLoad {
        key: String::new(),
        model: String::new(),
        ended: Wall(ended),
        stages: vec![(Stage::Weights, std::time::Duration::from_secs(weights))],
    };
    // It is at the same pace as two of them, and one came from the page cache.
    state.earlier = vec![load(1_000_000, 760), load(3_000_000, 10), load(5_000_000, 800)];
    let told = status(&state, build::NOW);
    assert_eq!(told["load"]["left_from"], "earlier-loads", "{:#}", told["load"]);
    assert_eq!(told["load"]["earlier_loads"], 2);
    state.earlier = vec![load(3_000_000, 10)];
    let told = status(&state, build::NOW);
    assert_eq!(
        (&told["load"]["left_from"], &told["load"]["earlier_loads"]),
        (&json!("rate"), &json!(0))
    );
}
