//! Documents against `assets/status.schema.json`.

use bringup::report::STATUS_SCHEMA;
use serde_json::Value;

/// The schema as JSON.
pub fn schema() -> Value {
    serde_json::from_str(STATUS_SCHEMA).expect("the schema is JSON")
}

/// Tells what is wrong with documents.
pub struct Checker(pub jsonschema::Validator);

impl Checker {
    pub fn new() -> Self {
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
        Self(options.build(&schema()).expect("the schema is one"))
    }

    /// Fails where the schema does not take it, with each place.
    pub fn demand(&self, what: &str, document: &Value) {
        let wrong: Vec<String> = self
            .0
            .iter_errors(document)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{what}: {wrong:#?}");
    }
}
