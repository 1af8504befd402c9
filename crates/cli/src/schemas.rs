//! The formats of all that is printed or saved as JSON: the list from which docs/schema is written.

use crate::commands::{apply, capture, doctor, report, runs, steer, undo};
use crate::json_schema::of;
use schemars::{JsonSchema, Schema};
use untax_core::receipt::{Header, Record};
use untax_core::{advice, check, compare, lab, node_classes, plan, receipt, timeline, verdict};
use untax_experiments::schemas::{AffinityBench, LocalityBench, PagesBench, PlatformBench};

/// A format.
pub struct Format {
    /// Its name and version, as the JSON says it.
    pub id: &'static str,
    /// What is of it.
    pub summary: &'static str,
    /// Its JSON Schema.
    pub schema: fn() -> Schema,
}

/// A receipt is a file of lines: the first line is the header, and every other line is a record.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "stands for both kinds of line in the schema")]
enum ReceiptLine {
    Header(Box<Header>),
    Record(Box<Record>),
}

/// Every format.
pub const FORMATS: &[Format] = &[
    Format {
        id: check::SCHEMA,
        summary: "untax check, and each window of untax watch",
        schema: of::<check::Check>,
    },
    Format { id: plan::SCHEMA, summary: "untax plan", schema: of::<plan::Plan> },
    Format {
        id: node_classes::SCHEMA,
        summary: "untax plan --node-classes",
        schema: of::<node_classes::NodeClasses>,
    },
    Format { id: "untax.apply/1", summary: "untax apply", schema: apply::schema },
    Format { id: "untax.undo/1", summary: "untax undo", schema: undo::schema },
    Format {
        id: receipt::SCHEMA,
        summary: "a line of a receipt in the state directory",
        schema: of::<ReceiptLine>,
    },
    Format { id: verdict::SCHEMA, summary: "untax verify", schema: of::<verdict::Verification> },
    Format { id: compare::SCHEMA, summary: "untax compare", schema: of::<compare::Comparison> },
    Format { id: advice::SCHEMA, summary: "untax advise", schema: of::<advice::Advice> },
    Format { id: "untax.bench.pages/1", summary: "untax bench pages", schema: of::<PagesBench> },
    Format {
        id: "untax.bench.pages-engine/1",
        summary: "untax bench pages --engine",
        schema: of::<PlatformBench>,
    },
    Format {
        id: "untax.bench.runtime/1",
        summary: "untax bench runtime",
        schema: of::<PlatformBench>,
    },
    Format {
        id: "untax.bench.network/1",
        summary: "untax bench network",
        schema: of::<PlatformBench>,
    },
    Format {
        id: "untax.bench.storage/1",
        summary: "untax bench storage",
        schema: of::<PlatformBench>,
    },
    Format {
        id: "untax.bench.affinity/1",
        summary: "untax bench affinity",
        schema: of::<AffinityBench>,
    },
    Format {
        id: "untax.bench.locality/1",
        summary: "untax bench locality",
        schema: of::<LocalityBench>,
    },
    Format { id: lab::SCHEMA, summary: "untax lab run", schema: of::<lab::LabRun> },
    Format { id: lab::MATRIX_SCHEMA, summary: "untax lab matrix", schema: of::<lab::LabMatrix> },
    Format {
        id: "untax.steer/1",
        summary: "untax steer: its lines, its status, its proposal",
        schema: steer::schema,
    },
    Format { id: timeline::SCHEMA, summary: "untax timeline", schema: of::<timeline::Timeline> },
    Format {
        id: untax_timeline::RECORDING_SCHEMA,
        summary: "a frame of a recording, as it is before it is compressed",
        schema: of::<untax_timeline::Frame>,
    },
    Format { id: "untax.fleet/1", summary: "untax fleet", schema: of::<untax_fleet::Fleet> },
    Format { id: "untax.capture/1", summary: "untax capture", schema: capture::schema },
    Format { id: "untax.report/1", summary: "untax report", schema: report::schema },
    Format { id: "untax.runs/1", summary: "untax runs", schema: runs::schema },
    Format { id: "untax.doctor/1", summary: "untax doctor", schema: doctor::schema },
];
