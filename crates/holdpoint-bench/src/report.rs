//! The figures: a plain table for people, JSON for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::blocks::Idle;
use crate::cold::Cold;
use crate::cycle::{Footprint, Measured};
use crate::first_byte::FirstByte;

/// Everything that was measured; the middle of several rounds counts.
#[derive(Default)]
pub(crate) struct Report {
    commits: Vec<usize>,
    cycles: BTreeMap<usize, Vec<Round>>,
    bytes_per_run: f64,
    memory: (usize, f64),
    cold: Option<Cold>,
    first_byte: Option<FirstByte>,
    idle: Option<Idle>,
}

struct Round {
    per_second: f64,
    limit: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Report {
    pub(crate) fn footprint(&mut self, footprint: &Footprint) {
        self.commits.clone_from(&footprint.commits);
    }

    pub(crate) fn cycles(&mut self, concurrency: usize, measured: Measured, limit: f64) {
        let round = Round {
            per_second: measured.cycles_per_second,
            limit,
            p50_us: quantile(&measured.latencies_us, 0.5),
            p99_us: quantile(&measured.latencies_us, 0.99),
        };
        self.cycles.entry(concurrency).or_default().push(round);
    }

    pub(crate) fn disk(&mut self, bytes_per_run: f64) {
        self.bytes_per_run = bytes_per_run;
    }

    pub(crate) fn memory(&mut self, runs: usize, mib: f64) {
        self.memory = (runs, mib);
    }

    pub(crate) fn cold(&mut self, cold: Cold) {
        self.cold = Some(cold);
    }

    pub(crate) fn first_byte(&mut self, first_byte: FirstByte) {
        self.first_byte = Some(first_byte);
    }

    pub(crate) fn idle(&mut self, idle: Idle) {
        self.idle = Some(idle);
    }

    /// A plain table.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: String| {
            let _ = writeln!(text, "{what:<46} {value}");
        };
        line("commits waited for in a cycle", format!("{} ({:?} bytes)", self.commits.len(), self.commits));
        for (concurrency, rounds) in &self.cycles {
            let middle = |of: fn(&Round) -> f64| median(rounds.iter().map(of).collect());
            let ratio = median(rounds.iter().map(|round| round.per_second / round.limit).collect());
            line(
                &format!("cycles per second, {concurrency} at once"),
                format!(
                    "{:>9.0}   bare {:>9.0}   ratio {ratio:.2}",
                    middle(|round| round.per_second),
                    middle(|round| round.limit)
                ),
            );
            line(
                &format!("decision to done, {concurrency} at once"),
                format!(
                    "p50 {:>8.3} ms   p99 {:>8.3} ms",
                    middle(|round| round.p50_us) / 1e3,
                    middle(|round| round.p99_us) / 1e3
                ),
            );
        }
        line("bytes on disk per paused run", format!("{:>9.0}", self.bytes_per_run));
        line(&format!("memory of {} paused runs", self.memory.0), format!("{:>9.1} MiB over empty", self.memory.1));
        if let Some(cold) = &self.cold {
            line(
                "a fresh process finishes a stored run",
                format!(
                    "p50 {:.1} ms   p99 {:.1} ms   (a process that does nothing: p50 {:.1} ms)",
                    quantile(&cold.finish_ms, 0.5),
                    quantile(&cold.finish_ms, 0.99),
                    quantile(&cold.nothing_ms, 0.5)
                ),
            );
        }
        if let Some(first) = &self.first_byte {
            line(
                "model's first token to client's first byte",
                format!(
                    "p50 {:.2} ms   p99 {:.2} ms   (asking the model itself: p50 {:.2} ms   p99 {:.2} ms)",
                    quantile(&first.served_ms, 0.5),
                    quantile(&first.served_ms, 0.99),
                    quantile(&first.direct_ms, 0.5),
                    quantile(&first.direct_ms, 0.99)
                ),
            );
        }
        if let Some(idle) = &self.idle {
            line(
                &format!("memory of the server with {} sockets", idle.sockets),
                format!(
                    "{:.1} MiB idle, {:.1} MiB when each watches a session   (none: {:.1} MiB)",
                    idle.open_mib, idle.watching_mib, idle.before_mib
                ),
            );
        }
        text
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> String {
        let cycles: BTreeMap<String, Value> = self
            .cycles
            .iter()
            .map(|(concurrency, rounds)| {
                let rounds: Vec<Value> = rounds
                    .iter()
                    .map(|round| {
                        json!({
                            "cycles_per_second": round.per_second,
                            "bare_cycles_per_second": round.limit,
                            "ratio": round.per_second / round.limit,
                            "decision_to_done_p50_us": round.p50_us,
                            "decision_to_done_p99_us": round.p99_us,
                        })
                    })
                    .collect();
                (concurrency.to_string(), Value::Array(rounds))
            })
            .collect();
        let cold = self.cold.as_ref().map(|cold| json!({"finish_ms": cold.finish_ms, "nothing_ms": cold.nothing_ms}));
        let first_byte = self.first_byte.as_ref();
        let first_byte = first_byte.map(|first| json!({"served_ms": first.served_ms, "direct_ms": first.direct_ms}));
        let idle = self.idle.as_ref().map(|idle| {
            json!({
                "sockets": idle.sockets,
                "before_mib": idle.before_mib,
                "open_mib": idle.open_mib,
                "watching_mib": idle.watching_mib,
            })
        });
        let all = json!({
            "commit_bytes": self.commits,
            "cycles": cycles,
            "bytes_on_disk_per_paused_run": self.bytes_per_run,
            "paused_runs": self.memory.0,
            "memory_over_empty_mib": self.memory.1,
            "cold": cold,
            "first_byte": first_byte,
            "sockets": idle,
        });
        format!("{all:#}\n")
    }
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    let index = (sorted.len() as f64 * part) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    quantile(&figures, 0.5)
}
