//! From a saved check to a plan. Pure: nothing is read and nothing is written.

use crate::case::{Case, TRANSPARENT, Wish};
use crate::preconditions::basis;
use crate::remedies::{REMEDIES, by_hand};
use crate::remedy::Draft;
use crate::{harm, lint, managed, sizing};
use sha2::{Digest, Sha256};
use untax_core::plan::{Expected, Origin, Plan, SCHEMA, Step};
use untax_core::{Bytes, Check, Database, Finding, Severity, Snapshot, page_size};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A rule that does not exist, or found nothing.
    #[error("the check has no finding of {rule}; it has {}", has.join(", "))]
    NoSuchFinding {
        /// The rule asked for.
        rule: String,
        /// The rules that found something.
        has: Vec<String>,
    },
    /// A size of huge page that this host does not have.
    #[error("{page} is no size of huge page of this host; it has {}", has.join(", "))]
    NoSuchPage {
        /// The size asked for.
        page: String,
        /// Those that there are.
        has: Vec<String>,
    },
    /// A plan that the lint refuses: a defect of a remedy.
    #[error(
        "no plan was made, as it would do harm: {}. This is a defect of untax: report it with a capture \
         (untax capture), and leave the rule out with --only",
        harms.join("; ")
    )]
    Harmful {
        /// What it would do.
        harms: Vec<String>,
    },
}

/// Makes the plan of a check.
pub fn plan(
    id: String,
    check: &Check,
    snapshot: &Snapshot,
    wish: &Wish,
) -> Result<Plan, PlanError> {
    let findings = findings(check, snapshot, wish)?;
    let page = page(snapshot, wish)?;
    let sizing = sizing::sizing(check, snapshot, page);
    let mut draft = Draft::default();
    let case = |findings| Case { snapshot, sizing: &sizing, wish, findings };
    let mut left = findings.clone();
    for remedy in REMEDIES {
        let answers = |finding: &Finding| {
            finding.remedy.as_deref().is_some_and(|wanted| remedy.answers.contains(&wanted))
        };
        let findings: Vec<_> = findings.iter().copied().filter(|(_, f)| answers(f)).collect();
        if findings.is_empty() {
            continue;
        }
        let made = (remedy.plan)(&case(findings));
        left.retain(|(database, finding)| !(answers(finding) && made.is_for(*database)));
        draft.add(made);
    }
    draft.add(by_hand::plan(&case(left)));
    draft.steps = joined(draft.steps);
    draft.warnings.extend(lint::lint(&draft, snapshot));
    let draft = managed::handed_over(draft, snapshot);
    let plan = Plan {
        schema: SCHEMA.to_owned(),
        plan: id,
        snapshot: Origin {
            run: check.run.clone(),
            taken_at: check.taken_at,
            basis: basis(snapshot),
        },
        sizing,
        steps: draft.steps,
        tasks: draft.tasks,
        warnings: draft.warnings,
        alternatives: wish.alternatives.clone(),
        expected: expected(&findings),
        digest: String::new(),
    };
    let harms = harm::harms(&plan, snapshot);
    if harms.is_empty() { Ok(sealed(plan)) } else { Err(PlanError::Harmful { harms }) }
}

/// The gains of findings, where they are known.
fn expected(findings: &Findings) -> Vec<Expected> {
    let one = |(database, finding): &(Option<&Database>, &Finding)| {
        let database = database.map(|database| database.id.clone())?;
        let gain = finding.gain?;
        Some(Expected { database, rule: finding.rule.clone(), gain })
    };
    findings.iter().filter_map(one).collect()
}

/// The size of huge page that the user wants.
fn page(snapshot: &Snapshot, wish: &Wish) -> Result<Option<Bytes>, PlanError> {
    let Some(name) = wish.page.as_deref().filter(|name| *name != TRANSPARENT) else {
        return Ok(None);
    };
    let sizes = sizing::sizes(snapshot);
    let size = page_size::from_token(name).filter(|size| sizes.contains(size));
    size.map(Some).ok_or_else(|| PlanError::NoSuchPage {
        page: name.to_owned(),
        has: sizes.into_iter().map(page_size::token).chain([TRANSPARENT.to_owned()]).collect(),
    })
}

/// The steps, of which those that set the same thing to the same value are one: two databases may share a
/// limit.
fn joined(steps: Vec<Step>) -> Vec<Step> {
    let mut joined: Vec<Step> = Vec::new();
    for step in steps {
        let same = |other: &&mut Step| (&other.target, &other.to) == (&step.target, &step.to);
        match joined.iter_mut().find(same) {
            Some(earlier) => {
                earlier.databases.extend(step.databases);
                earlier.databases.sort();
                earlier.databases.dedup();
            }
            None => joined.push(step),
        }
    }
    joined
}

/// A plan with the digest of what it says.
pub fn sealed(plan: Plan) -> Plan {
    let digest = digest(&Plan { digest: String::new(), ..plan.clone() });
    Plan { digest, ..plan }
}

/// Whether a plan is as it was made.
pub fn intact(plan: &Plan) -> bool {
    sealed(plan.clone()).digest == plan.digest
}

fn digest(plan: &Plan) -> String {
    // A plan is plain data with string keys: it can always be written as JSON.
    let text = serde_json::to_vec(plan).unwrap_or_default();
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

type Findings<'a> = Vec<(Option<&'a Database>, &'a Finding)>;

fn findings<'a>(
    check: &'a Check,
    snapshot: &'a Snapshot,
    wish: &Wish,
) -> Result<Findings<'a>, PlanError> {
    let of_databases = check.databases.iter().flat_map(|checked| {
        let database = snapshot.databases.iter().find(|database| database.id == checked.id);
        checked.findings.iter().map(move |finding| (database, finding))
    });
    let mut findings: Findings = of_databases.collect();
    findings.extend(check.findings.iter().map(|finding| (None, finding)));
    for rule in &wish.only {
        if !findings.iter().any(|(_, finding)| finding.rule == *rule) {
            let mut has: Vec<String> = findings.iter().map(|(_, f)| f.rule.clone()).collect();
            has.sort();
            has.dedup();
            return Err(PlanError::NoSuchFinding { rule: rule.clone(), has });
        }
    }
    findings.retain(|(_, finding)| wish.only.is_empty() || wish.only.contains(&finding.rule));
    findings.retain(|(_, finding)| !wish.significant_only || is_significant(finding));
    Ok(findings)
}

/// Shown with two decimals, a smaller gain is 1.00.
const LEAST_GAIN: f64 = 1.005;

/// Whether a finding is worth a change: it is more than worth knowing, and its gain shows, where one is known.
pub fn is_significant(finding: &Finding) -> bool {
    let is_seen = finding.gain.as_ref().is_none_or(|gain| gain.factor >= LEAST_GAIN);
    finding.severity > Severity::Info && is_seen
}
