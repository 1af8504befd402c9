//! The manifest of the agent, from the chart's own template and values, so that both say the same.
//!
//! Of Helm's language only what that template uses is known: values, `toJson`, the release's namespace, and
//! lines that begin and end what depends on a value. Of a `range` it knows that nothing comes of an empty map.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

const TEMPLATE: &str = include_str!("../../deploy/chart/untax/templates/agent.yaml");
const VALUES: &str = include_str!("../../deploy/chart/untax/values.yaml");

/// The namespace of the manifest.
const NAMESPACE: &str = "untax";

const HEAD: &str = "\
# Written by `cargo xtask docs` from deploy/chart/untax, with the values there.
# The agent on every node of a cluster: what the platform takes from each database, as metrics.
#
#   kubectl apply -f agent.yaml
#   kubectl -n untax exec ds/untax-agent -- untax agent last
#   kubectl delete -f agent.yaml        leaves /var/lib/untax on the nodes and nothing else
apiVersion: v1
kind: Namespace
metadata:
  name: untax
  labels:
    # The pids of the host, and capabilities.
    pod-security.kubernetes.io/enforce: privileged
---
";

/// The manifest, with the values of the chart.
pub fn manifest() -> Result<String> {
    let values = YamlLoader::load_from_str(VALUES).context("values.yaml")?;
    let values = json(values.first().context("values.yaml is empty")?)?;
    Ok(format!("{HEAD}{}", render(TEMPLATE, &values)?))
}

fn json(yaml: &Yaml) -> Result<Value> {
    Ok(match yaml {
        Yaml::String(text) => text.as_str().into(),
        Yaml::Integer(number) => (*number).into(),
        Yaml::Boolean(is) => (*is).into(),
        Yaml::Array(all) => Value::Array(all.iter().map(json).collect::<Result<_>>()?),
        Yaml::Hash(all) => {
            let pair = |(key, value): (&Yaml, &Yaml)| {
                Ok((key.as_str().context("a key that is no text")?.to_owned(), json(value)?))
            };
            Value::Object(all.iter().map(pair).collect::<Result<_>>()?)
        }
        other => bail!("{other:?} is not used in values"),
    })
}

fn render(template: &str, values: &Value) -> Result<String> {
    let mut out = String::new();
    // Whether each open condition holds.
    let mut open: Vec<bool> = Vec::new();
    for line in template.lines() {
        if let Some(condition) = line.strip_prefix("{{- if ") {
            let name = condition.strip_suffix(" }}").context("an if without an end of line")?;
            open.push(is_true(value(name, values)?));
        } else if let Some(range) = line.strip_prefix("{{- range ") {
            let name = range.split_once(":= ").and_then(|(_, name)| name.strip_suffix(" }}"));
            if is_true(value(name.context("a range without a map")?, values)?) {
                bail!("{line}: the manifest has no values of it");
            }
            open.push(false);
        } else if line == "{{- end }}" {
            open.pop().context("an end of nothing")?;
        } else if open.iter().all(|holds| *holds) {
            out.push_str(&filled(line, values)?);
            out.push('\n');
        }
    }
    if !open.is_empty() {
        bail!("a condition has no end");
    }
    Ok(out)
}

fn filled(line: &str, values: &Value) -> Result<String> {
    let Some((before, rest)) = line.split_once("{{ ") else { return Ok(line.to_owned()) };
    let (word, after) = rest.split_once(" }}").with_context(|| line.to_owned())?;
    let text = match word.strip_prefix("toJson ") {
        Some(name) => value(name, values)?.to_string(),
        None if word == ".Release.Namespace" => NAMESPACE.to_owned(),
        None => match value(word, values)? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        },
    };
    Ok(format!("{before}{text}{}", filled(after, values)?))
}

fn value<'a>(name: &str, values: &'a Value) -> Result<&'a Value> {
    let path = name.strip_prefix(".Values.").with_context(|| format!("{name} is not known"))?;
    let found = path.split('.').try_fold(values, |value, key| value.get(key));
    found.with_context(|| format!("{name} is not in values.yaml"))
}

/// As Helm takes it.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_manifest_is_yaml_with_least_privilege() {
        let text = manifest().unwrap();
        let all = YamlLoader::load_from_str(&text).unwrap();
        let pod = &all[1]["spec"]["template"]["spec"];
        assert_eq!(pod["hostPID"].as_bool(), Some(true));
        assert_eq!(pod["automountServiceAccountToken"].as_bool(), Some(false));
        let security = &pod["containers"][0]["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"].as_bool(), Some(true));
        assert_eq!(security["capabilities"]["drop"][0].as_str(), Some("ALL"));
        let added = security["capabilities"]["add"].as_vec().unwrap();
        let added: Vec<&str> = added.iter().filter_map(Yaml::as_str).collect();
        assert_eq!(added, ["BPF", "PERFMON", "SYS_PTRACE", "SETUID", "SETGID"]);
        assert!(!text.contains("{{"), "{text}");
    }

    #[test]
    fn what_depends_on_a_value_is_there_with_it_alone() {
        let template =
            "a\n{{- if .Values.x }}\nb: {{ .Values.x }} {{ toJson .Values.y }}\n{{- end }}\n";
        let rendered = |x: Value| render(template, &json!({"x": x, "y": ["z"]})).unwrap();
        assert_eq!(rendered(json!("")), "a\n");
        assert_eq!(rendered(json!(7)), "a\nb: 7 [\"z\"]\n");
        let range = "a\n{{- range $k, $v := .Values.x }}\n{{ $k }}\n{{- end }}\n";
        assert_eq!(render(range, &json!({"x": {}})).unwrap(), "a\n");
        assert!(render(range, &json!({"x": {"k": 1}})).is_err());
        assert!(render("{{- if .Values.x }}\n", &json!({"x": true})).is_err());
        assert!(render("{{ .Values.none }}", &json!({})).is_err());
    }
}
