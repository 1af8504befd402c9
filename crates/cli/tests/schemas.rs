//! Real outputs are what docs/schema says, and its schemas only grow.

#![expect(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test")]

use boon::{Compiler, Schemas};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn schema(id: &str) -> Value {
    read(&root().join("docs/schema").join(format!("{}.json", id.replace('/', "-"))))
}

/// Fails where an output is not what the schema that it names says.
fn assert_valid(output: &Value, whence: &str) {
    let id = output["schema"].as_str().unwrap_or_else(|| panic!("{whence} names no format"));
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("schema.json", schema(id)).unwrap();
    let index = compiler.compile("schema.json", &mut schemas).unwrap();
    if let Err(error) = schemas.validate(output, index) {
        panic!("{whence} is not {id}: {error:#}");
    }
}

#[test]
fn checks_of_captured_hosts_are_what_the_schema_says() {
    for case in fs::read_dir(root().join("tests/cases")).unwrap() {
        let path = case.unwrap().path();
        if path.to_str().unwrap().ends_with(".expected.json") {
            assert_valid(&read(&path), &path.display().to_string());
        }
    }
}

#[test]
fn what_an_output_lacks_or_has_in_another_type_is_refused() {
    let mut check = read(&root().join("tests/cases/postgres-small-pages.expected.json"));
    check["window_s"] = "ten".into();
    let refused = std::panic::catch_unwind(|| assert_valid(&check, "a text for a number"));
    assert!(refused.is_err());
    check.as_object_mut().unwrap().remove("window_s");
    assert!(std::panic::catch_unwind(|| assert_valid(&check, "no window")).is_err());
}

/// Prints something as JSON, which must be valid.
fn print(state: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
    let output = command.arg("--state-dir").arg(state).args(arguments).output().unwrap();
    let why = || panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| why());
    assert_valid(&printed, &format!("{arguments:?}"));
    printed
}

#[test]
fn what_commands_print_is_what_the_schemas_say() {
    let state = tempfile::tempdir().unwrap();
    let work = state.path();
    let case = root().join("tests/cases/postgres-small-pages.tar.gz");
    let run = root().join("tests/formats/0.1/runs/check.json");
    let (case, run) = (case.to_str().unwrap(), run.to_str().unwrap());
    let page = work.join("page.html");
    print(work, &["check", "--replay", case, "--json"]);
    print(work, &["check", "--replay", run, "--json"]);
    print(work, &["plan", "--from", case, "--json"]);
    print(work, &["undo", "--stale", "--json"]);
    print(work, &["runs", "--json"]);
    let recording = root().join("tests/formats/0.1/recordings/step.untax");
    print(work, &["timeline", recording.to_str().unwrap(), "--json"]);
    print(work, &["doctor", "--json"]);
    print(work, &["compare", run, run, "--json"]);
    print(work, &["report", run, "-o", page.to_str().unwrap(), "--json"]);
    print(work, &["steer", "status", "--json"]);
}

#[test]
fn saved_results_of_0_1_are_what_the_schemas_say() {
    for kind in ["runs", "plans"] {
        for file in fs::read_dir(root().join("tests/formats/0.1").join(kind)).unwrap() {
            let path = file.unwrap().path();
            let saved = read(&path);
            let result = if saved["check"].is_object() { &saved["check"] } else { &saved };
            assert_valid(result, &path.display().to_string());
        }
    }
    for file in fs::read_dir(root().join("tests/formats/0.1/receipts")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        assert_valid(&serde_json::from_str(text.lines().next().unwrap()).unwrap(), "a receipt");
    }
}

/// Each name of a schema with its types, by its path; a reference is followed once.
fn names(
    schema: &Value,
    root: &Value,
    path: &str,
    seen: &mut Vec<String>,
    all: &mut BTreeSet<String>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        if !seen.iter().any(|known| known == reference) {
            seen.push(reference.to_owned());
            let target = root.pointer(reference.trim_start_matches('#')).unwrap();
            names(target, root, path, seen, all);
            seen.pop();
        }
        return;
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let always = if required.contains(&name.as_str()) { "always" } else { "may be absent" };
        all.insert(format!("{path} {always}"));
        names(inner, root, &path, seen, all);
    }
    match &schema["type"] {
        Value::String(one) => drop(all.insert(format!("{path} {one}"))),
        Value::Array(several) => {
            all.extend(several.iter().filter_map(Value::as_str).map(|one| format!("{path} {one}")));
        }
        _ => {}
    }
    names_of_parts(schema, root, path, seen, all);
}

fn names_of_parts(
    schema: &Value,
    root: &Value,
    path: &str,
    seen: &mut Vec<String>,
    all: &mut BTreeSet<String>,
) {
    for word in schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")) {
        all.insert(format!("{path} {word}"));
    }
    if schema["items"].is_object() {
        names(&schema["items"], root, &format!("{path}[]"), seen, all);
    }
    if schema["additionalProperties"].is_object() {
        names(&schema["additionalProperties"], root, &format!("{path}.*"), seen, all);
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for inner in schema[key].as_array().into_iter().flatten() {
            names(inner, root, path, seen, all);
        }
    }
}

/// All names of all formats.
fn present() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for format in untax::schemas::FORMATS {
        let schema = schema(format.id);
        names(&schema, &schema, format.id, &mut Vec::new(), &mut all);
    }
    all
}

#[test]
fn names_of_0_1_are_still_there_with_their_types() {
    let file = root().join("tests/formats/0.1/names.txt");
    let now = present();
    if std::env::var_os("UNTAX_RELEASE_NAMES").is_some() {
        let lines: Vec<&str> = now.iter().map(String::as_str).collect();
        fs::write(&file, lines.join("\n") + "\n").unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap();
    let gone: Vec<&str> = kept.lines().filter(|line| !now.contains(*line)).collect();
    assert!(gone.is_empty(), "names are added, and never removed or changed: {gone:#?}");
    assert!(now.contains("untax.check/1.databases[].tax.share number"), "the names are read");
}
