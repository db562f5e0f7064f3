//! Prints every reply that reached the wrong caller.

use crosswire::analyze;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};

fn main() -> anyhow::Result<()> {
    let inputs: Vec<String> = std::env::args().skip(1).collect();
    let report = analyze::run(&inputs, &ReadOptions::default(), &AnalyzeOptions::default())?;
    for trouble in &report.troubles {
        eprintln!("{trouble}");
    }
    for finding in report.findings.iter().filter(|f| f.rule.starts_with("crossed/")) {
        println!("{} ({:?}): {}", finding.rule, finding.confidence, finding.summary);
        for proof in &finding.evidence {
            let input = proof.input.and_then(|i| report.inputs.get(i as usize)).map_or("", |i| &i.name);
            println!("  {input}:{} {}", proof.frame.or(proof.line).unwrap_or(0), proof.text.as_deref().unwrap_or(""));
        }
    }
    Ok(())
}
