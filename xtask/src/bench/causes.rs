//! Predicted against measured gain of removing each cause that the lab can inject, on each engine
//! that it makes sense for.
//!
//! One server for each cause and engine: arm A runs with the cause, arm B without, in an order that
//! alternates with the pair. A check watches each trial in both arms, so that its own cost is in
//! both; the prediction is what it says of the cause in arm A.

use super::trials::{Trial, Trials, order};
use super::{Output, Untax, essence, finished, gains};
use anyhow::Context;
use clap::Args;
use serde_json::Value;
use std::time::Instant;
use untax_lab::{CAUSES, Cause, Engine, Scene, Turn};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Pairs of trials of each cause on each engine
    #[arg(long, default_value_t = 7)]
    pairs: u32,
    /// Length of the check in each trial, seconds; the load runs from before it until after it
    #[arg(long, default_value_t = 8)]
    seconds: u32,
    /// Only these causes
    #[arg(long, value_name = "CAUSE,…", value_delimiter = ',')]
    causes: Vec<String>,
    /// Only these engines
    #[arg(long, value_name = "ENGINE,…", value_delimiter = ',')]
    engines: Vec<String>,
    #[command(flatten)]
    output: Output,
}

/// A load goes on for so much longer than the check's window: it closes with a last look.
const SLACK_S: u32 = 2;

/// Runs the bench and writes the table. What could not be measured is said in it too.
pub fn run(options: &Options) -> anyhow::Result<()> {
    options.output.prepare()?;
    let untax = Untax::find()?;
    let path = options.output.out.join("causes.json");
    let mut trials = Trials::open(&path)?;
    let mut failed = Vec::new();
    for (cause, engine) in tasks(options) {
        // Others may want the machine too: the turn is given back between causes.
        let _turn = Turn::wait()?;
        if let Err(error) = pairs(cause, engine, options, &untax, &mut trials) {
            eprintln!("{}: {error:#}", name(cause, engine));
            failed.push(format!("`{}`: {error:#}", name(cause, engine)));
        }
    }
    Trials::finish(&path)?;
    write_table(&trials, &failed, options)
}

/// Causes that end, and the engines that suffer from them here.
fn tasks(options: &Options) -> Vec<(&'static Cause, Engine)> {
    let among = |chosen: &[String], id: &str| chosen.is_empty() || chosen.iter().any(|c| c == id);
    let causes = CAUSES.iter().filter(|cause| !cause.is_none() && among(&options.causes, cause.id));
    let all = causes.flat_map(|cause| Engine::ALL.map(|engine| (cause, engine)));
    all.filter(|(cause, engine)| {
        among(&options.engines, engine.id()) && cause.impossible(*engine).is_none()
    })
    .collect()
}

fn name(cause: &Cause, engine: Engine) -> String {
    format!("{} on {}", cause.id, engine.id())
}

/// All pairs of one cause on one engine that were not made yet.
fn pairs(
    cause: &'static Cause,
    engine: Engine,
    options: &Options,
    untax: &Untax,
    trials: &mut Trials,
) -> anyhow::Result<()> {
    let (load, path) = (name(cause, engine), options.output.out.join("causes.json"));
    let missing: Vec<(u32, &str)> = (0..options.pairs)
        .flat_map(|pair| order(pair).map(|arm| (pair, arm)))
        .filter(|(pair, arm)| !trials.has(*pair, &load, arm))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let begun = Instant::now();
    let mut scene = Scene::set(cause, engine)?;
    eprintln!("{load}: set up in {:.0} s", begun.elapsed().as_secs_f64());
    // Fills caches, which no trial is to pay for.
    scene.load(2)?.map(untax_lab::Load::finish).transpose()?;
    for (pair, arm) in missing {
        scene.switch(arm == "A")?;
        let (tps, check) = trial(&scene, cause, untax, options.seconds)?;
        let arm = arm.into();
        trials.add(Trial { pair, load: load.clone(), arm, tps, check: Some(check) }, &path)?;
    }
    eprintln!("{load}: {:.0} s in all", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Throughput of the load, and what a check said meanwhile.
fn trial(
    scene: &Scene,
    cause: &Cause,
    untax: &Untax,
    seconds: u32,
) -> anyhow::Result<(f64, Value)> {
    let settling = scene.settling();
    let longer_s = u32::try_from(settling.as_secs())? + SLACK_S;
    let load = scene.load(seconds + longer_s)?.context("an idle server has no throughput")?;
    std::thread::sleep(settling);
    let pid = scene.pid().context("the server has ended; is there a crash in its log?")?;
    let check = untax.start_check(pid, &format!("{seconds}s"))?;
    let tps = load.finish()?;
    let check = finished(check)?;
    scene.survived()?;
    Ok((tps, essence(&check, cause.id)))
}

fn write_table(trials: &Trials, failed: &[String], options: &Options) -> anyhow::Result<()> {
    let failed = match failed {
        [] => String::new(),
        failed => format!("\nNot measured:\n\n- {}\n", failed.join("\n- ")),
    };
    let text = format!(
        "# Predicted and measured gain of removing each cause\n\n\
         The causes of `untax lab list` that this machine can make, on the lab's scratch servers \
         and loads, {} pairs of trials with and without in ABBA order on one server each, a check \
         of {} s in every trial. {} Where nothing was predicted, the cause was found without a \
         price, or not at all: the trials say which.\n\n\
         Machine: {}. Command: `{}`. Every trial: [causes.json](causes.json).\n\n{}{failed}",
        options.pairs,
        options.seconds,
        gains::LEGEND,
        trials.machine,
        trials.command,
        gains::table(trials, trials.loads().into_iter())
    );
    options.output.write("causes.md", &text)?;
    eprintln!("{text}");
    Ok(())
}
