//! Doing a plan, and undoing it.
//!
//! Before a step acts, its prior value is on disk. So whatever ends the executor, the receipt has
//! all that undoing needs, and every do and undo may be repeated.

use crate::lock::{Lock, LockError};
use crate::receipt::{Deed, Receipt, ReceiptError};
use crate::refresh;
use crate::target::{self, Added};
use crate::tree::Tree;
use serde::Serialize;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use untax_core::plan::{Step, Target};
use untax_core::receipt::{Disturbance, Header, Record, Status};

/// Why a plan was not applied, or not undone.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// Another executor is at work.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A step cannot be done; nothing was changed.
    #[error("nothing was changed: {}", reasons.join("; "))]
    Refused {
        /// Why, step by step.
        reasons: Vec<String>,
    },
    /// The receipt cannot be read or written; nothing was changed after that.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// A step failed. What was done before it was undone, unless `left` says otherwise.
    #[error("step {step} failed{}", left.as_deref().map_or(
        ", and what was done before it is undone".to_owned(),
        |left| format!("; not undone: {left}; see untax undo {receipt}"),
    ))]
    Failed {
        /// The step.
        step: String,
        /// The receipt.
        receipt: String,
        /// What could not be undone.
        left: Option<String>,
        /// What went wrong.
        source: io::Error,
    },
    /// Some of a receipt could not be undone.
    #[error("the plan could not be undone wholly: {left}; untax undo {receipt} tries again")]
    NotWhole {
        /// The receipt.
        receipt: String,
        /// The steps that could not be undone, with the reason.
        left: String,
    },
}

/// How a step stands before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It can be done.
    Ready,
    /// The host is as it would make it.
    Done,
    /// It cannot be done, and why.
    Refused(String),
}

/// What undoing did.
#[derive(Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Undone {
    /// Steps whose prior value is there again.
    pub restored: Vec<String>,
    /// Steps whose value somebody changed since; they were left alone.
    pub drifted: Vec<Drift>,
    /// Steps that could not be undone, and why.
    pub failed: Vec<(String, String)>,
    /// Limits that a command changed though no step is about them.
    pub disturbed: Vec<Disturbance>,
    /// Why the receipt does not say all this; the host is as told here nevertheless.
    pub unrecorded: Option<String>,
}

/// A value that is neither what a step made it nor what it was before.
#[derive(Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Drift {
    /// The step.
    pub step: String,
    /// What was before.
    pub prior: Option<String>,
    /// What the step made of it.
    pub made: Option<String>,
    /// What it is now.
    pub now: Option<String>,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, prior, made, now } = self;
        let [prior, made, now] = [prior, made, now].map(|value| display(value.as_deref()));
        write!(f, "{step} was {prior}, untax made it {made}, and somebody made it {now} since")
    }
}

impl Undone {
    /// Whether everything is as before.
    pub fn is_whole(&self) -> bool {
        self.drifted.is_empty() && self.failed.is_empty()
    }

    /// The steps that could not be undone, with the reason; empty when all were.
    pub fn left(&self) -> String {
        let drifted = self.drifted.iter().map(Drift::to_string);
        let failed = self.failed.iter().map(|(step, why)| format!("{step}: {why}"));
        drifted.chain(failed).collect::<Vec<_>>().join("; ")
    }
}

/// How each step stands.
pub fn standing(tree: &Tree, steps: &[Step]) -> Vec<Standing> {
    steps.iter().map(|step| stands(tree, step)).collect()
}

fn stands(tree: &Tree, step: &Step) -> Standing {
    let now = match target::read(tree, &step.target) {
        Ok(now) => now,
        Err(error) => return Standing::Refused(format!("{}: {error}", step.id)),
    };
    if now == step.to {
        return Standing::Done;
    }
    if now != step.from {
        return Standing::Refused(format!(
            "{} changed since the check: it was {}, now it is {}; check again, and make a new plan",
            step.id,
            display(step.from.as_deref()),
            display(now.as_deref())
        ));
    }
    if let Some(program) = step.refresh.first().filter(|program| !tree.has_program(program)) {
        return Standing::Refused(format!("{}: {program} is not installed here", step.id));
    }
    match unwritable(tree, step) {
        None => Standing::Ready,
        Some(why) => Standing::Refused(why),
    }
}

/// Why this user cannot write what a step sets; `None` when they can.
pub fn unwritable(tree: &Tree, step: &Step) -> Option<String> {
    let error = writable(tree, step).err()?;
    Some(format!(
        "{}: {} cannot be written ({error}); run as root, on a host whose files are its own",
        step.id,
        target::file(&step.target).unwrap_or_default()
    ))
}

/// Whether the file of a step, or the nearest folder of one that is to be made, may be written.
fn writable(tree: &Tree, step: &Step) -> io::Result<()> {
    let Some(file) = target::file(&step.target) else { return Ok(()) };
    let replaced = matches!(step.target, Target::File { .. } | Target::Block { .. });
    let place = tree.place(&file);
    let place = place.ancestors().skip(usize::from(replaced)).find(|place| place.exists());
    let place = place.ok_or(io::ErrorKind::NotFound)?;
    Ok(rustix::fs::access(place, rustix::fs::Access::WRITE_OK)?)
}

/// A value as people read it.
fn display(value: Option<&str>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(text) if text.contains('\n') => format!("{} lines", text.lines().count()),
        Some(text) => text.to_owned(),
    }
}

/// Does the steps of a header one after the other. `stop` is looked at between steps; when it is
/// set, or a step fails, all that was done is undone. Where the host is already as all steps would
/// make it there is nothing to do, nothing that could be undone, and so no receipt.
pub fn apply(
    tree: &Tree,
    receipts: &Path,
    header: Header,
    stop: &AtomicBool,
    mut tell: impl FnMut(&Step),
) -> Result<Option<Receipt>, ExecutorError> {
    let _lock = Lock::to_change(tree)?;
    let standing = standing(tree, &header.steps);
    let reasons: Vec<String> = standing.iter().filter_map(refusal).collect();
    if !reasons.is_empty() {
        return Err(ExecutorError::Refused { reasons });
    }
    if standing.iter().all(|standing| *standing == Standing::Done) {
        return Ok(None);
    }
    let steps = header.steps.clone();
    let mut receipt = Receipt::begin(receipts, header)?;
    let ready = steps.iter().zip(standing).filter(|(_, s)| *s == Standing::Ready);
    let ready: Vec<&Step> = ready.map(|(step, _)| step).collect();
    for (at, step) in ready.iter().enumerate() {
        tell(step);
        // Once for all that need it: a reload is no harmless thing.
        let is_last = !ready[at + 1..].iter().any(|later| later.refresh == step.refresh);
        let done = if stop.load(Ordering::Relaxed) {
            Err(Failure::Step(io::ErrorKind::Interrupted.into()))
        } else {
            take(tree, &mut receipt, step, is_last)
        };
        if let Err(failure) = done {
            return Err(rolled_back(tree, receipt, step, failure));
        }
    }
    match (receipt.add(Record::Applied), steps.last()) {
        (Err(error), Some(last)) => Err(rolled_back(tree, receipt, last, error.into())),
        (added, _) => Ok(added.map(|()| Some(receipt))?),
    }
}

fn refusal(standing: &Standing) -> Option<String> {
    match standing {
        Standing::Refused(why) => Some(why.clone()),
        Standing::Ready | Standing::Done => None,
    }
}

/// Why a step was not done.
enum Failure {
    Step(io::Error),
    Receipt(ReceiptError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Step(error)
    }
}

impl From<ReceiptError> for Failure {
    fn from(error: ReceiptError) -> Self {
        Self::Receipt(error)
    }
}

/// Does a step; `refreshes` says whether its command is to run, or that of a later step does.
fn take(tree: &Tree, receipt: &mut Receipt, step: &Step, refreshes: bool) -> Result<(), Failure> {
    let prior = target::read(tree, &step.target)?;
    let folders = match &step.target {
        Target::File { file } => tree.missing_folders(file),
        _ => Vec::new(),
    };
    let alike = target::alike(tree, &step.target, step.to.as_deref())?;
    receipt.add(Record::Doing { step: step.id.clone(), prior, folders, alike })?;
    target::write(tree, &step.target, step.to.as_deref())?;
    if refreshes {
        let (ran, disturbed) = refresh::run(tree, &step.refresh, &[]);
        for one in disturbed {
            receipt.add(Record::Disturbed(one))?;
        }
        ran?;
    }
    confirm(tree, step, step.to.as_deref())?;
    receipt.add(Record::Done { step: step.id.clone() })?;
    Ok(())
}

/// Sees that the value of a step's target is there.
fn confirm(tree: &Tree, step: &Step, value: Option<&str>) -> io::Result<()> {
    let now = target::read(tree, &step.target)?;
    if now.as_deref() == value {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "set to {}, but it is {}",
        display(value),
        display(now.as_deref())
    )))
}

fn rolled_back(tree: &Tree, mut receipt: Receipt, step: &Step, failure: Failure) -> ExecutorError {
    let undone = revert(tree, &mut receipt, false);
    let left = undone.left();
    let source = match failure {
        Failure::Step(source) => source,
        Failure::Receipt(error) if left.is_empty() => return error.into(),
        Failure::Receipt(error) => io::Error::other(error),
    };
    ExecutorError::Failed {
        step: step.id.clone(),
        receipt: receipt.id().to_owned(),
        left: (!left.is_empty()).then_some(left),
        source,
    }
}

/// Undoes what a receipt tells, the last step first. What somebody changed since is left alone,
/// unless `force` is given.
pub fn undo(tree: &Tree, receipt: &mut Receipt, force: bool) -> Result<Undone, ExecutorError> {
    let _lock = Lock::to_change(tree)?;
    // Whoever had the lock may have written to it since it was read.
    receipt.read_again()?;
    Ok(revert(tree, receipt, force))
}

/// The same for a receipt that was half way when it was read: one that came to its end since is left
/// alone.
pub fn undo_stale(
    tree: &Tree,
    receipt: &mut Receipt,
    force: bool,
) -> Result<Undone, ExecutorError> {
    let _lock = Lock::to_change(tree)?;
    receipt.read_again()?;
    if receipt.status() == Status::Interrupted {
        return Ok(revert(tree, receipt, force));
    }
    Ok(Undone::default())
}

/// Undoes a receipt and leaves nothing of it; an error when something is left.
pub fn undo_wholly(tree: &Tree, receipt: &mut Receipt) -> Result<(), ExecutorError> {
    let undone = undo(tree, receipt, false)?;
    if undone.is_whole() {
        return Ok(());
    }
    Err(ExecutorError::NotWhole { receipt: receipt.id().to_owned(), left: undone.left() })
}

fn revert(tree: &Tree, receipt: &mut Receipt, force: bool) -> Undone {
    let mut undone = Undone::default();
    let read = receipt.clone();
    let deeds = read.deeds();
    let mut owed: Vec<&[String]> = Vec::new();
    for (at, deed) in deeds.iter().enumerate().rev() {
        let id = deed.step.id.clone();
        let mut done = put_back(tree, deed, force);
        let refresh = deed.step.refresh.as_slice();
        // A step that shares it may have been undone before this process, which then ended.
        let is_shared =
            || read.header().steps.iter().filter(|step| step.refresh == refresh).count() > 1;
        if is_shared() || matches!(done, Ok(PutBack::Changed)) {
            owed.push(refresh);
        }
        let is_last = !deeds[..at].iter().any(|left| left.step.refresh == refresh);
        if is_last && owed.contains(&refresh) && !refresh.is_empty() {
            let ran = run_refresh(tree, receipt, refresh, &mut undone);
            done = ran.and(done);
        }
        match done {
            Ok(PutBack::Changed | PutBack::Unchanged) => {
                undone.restored.push(id.clone());
                // The host matters more than the record: a full disk must not keep it changed.
                if let Err(error) = receipt.add(Record::Undone { step: id }) {
                    undone.unrecorded = Some(error.to_string());
                }
            }
            Ok(PutBack::Drifted(drift)) => undone.drifted.push(drift),
            Err(error) => undone.failed.push((id, error.to_string())),
        }
    }
    if undone.is_whole()
        && let Err(error) = receipt.add(Record::Reverted)
    {
        undone.unrecorded = Some(error.to_string());
    }
    undone
}

/// Runs the command of a step that was undone, and remembers what else it changed.
fn run_refresh(
    tree: &Tree,
    receipt: &mut Receipt,
    command: &[String],
    undone: &mut Undone,
) -> io::Result<()> {
    let steps = receipt.header().steps.iter();
    let own: Vec<String> = steps.filter_map(|step| target::file(&step.target)).collect();
    let (ran, disturbed) = refresh::run(tree, command, &own);
    for one in disturbed {
        if let Err(error) = receipt.add(Record::Disturbed(one.clone())) {
            undone.unrecorded = Some(error.to_string());
        }
        undone.disturbed.push(one);
    }
    ran
}

/// The outcome of undoing one step.
enum PutBack {
    /// Its prior value is there again, and its command has to run.
    Changed,
    /// Its prior value was there already.
    Unchanged,
    /// Somebody changed it since.
    Drifted(Drift),
}

fn put_back(tree: &Tree, deed: &Deed, force: bool) -> io::Result<PutBack> {
    let step = deed.step;
    if let Some(file) = target::file(&step.target) {
        tree.clear_draft(&file)?;
    }
    let now = target::read(tree, &step.target)?;
    if now.is_none() && target::is_of_kernel(&step.target) {
        return Ok(PutBack::Unchanged);
    }
    let added = Added { lines: step.to.as_deref().unwrap_or_default(), alike: deed.alike };
    let loose = if deed.done { target::loose(tree, &step.target, added)? } else { None };
    let changed = now.as_deref() != deed.prior || loose.is_some();
    if changed {
        let ours = now == step.to || is_half_way(deed, now.as_deref());
        if (!ours || loose.is_some()) && !force {
            return Ok(PutBack::Drifted(Drift {
                step: step.id.clone(),
                prior: deed.prior.map(str::to_owned),
                made: step.to.clone(),
                now: loose.or(now),
            }));
        }
        if loose.is_some() {
            target::remove_loose(tree, &step.target, added)?;
        }
        target::write(tree, &step.target, deed.prior)?;
    }
    tree.remove_folders(deed.folders);
    confirm(tree, step, deed.prior)?;
    // Of a step that was not done to its end it cannot be told whether its command ran.
    Ok(if changed || !deed.done { PutBack::Changed } else { PutBack::Unchanged })
}

/// Whether it was being set when the executor was ended: a pool that was growing, or boot entries of
/// which some were changed.
fn is_half_way(deed: &Deed, now: Option<&str>) -> bool {
    !deed.done && target::is_between(&deed.step.target, deed.prior, now, deed.step.to.as_deref())
}
