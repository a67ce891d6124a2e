//! How long it takes from the start of the program until it has answered a call: in an empty folder, and in one that it
//! knows.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use super::{Rig, Row};
use crate::load::{self, Plan};
use crate::mock::Shape;
use crate::prompt::Prompt;
use crate::targets::{self, Sprag};

pub(super) fn measure(rig: &Rig<'_>) -> Result<Row> {
    rig.mock.set(Shape::default());
    let folder = tempfile::tempdir()?;
    let first = once(rig, folder.path())?;
    let later = once(rig, folder.path())?;
    Ok(Row::from([("first_start_ms", first), ("later_start_ms", later)]))
}

fn once(rig: &Rig<'_>, folder: &Path) -> Result<f64> {
    let how = Sprag { program: rig.program, mock: rig.mock.address, folder, seat: rig.seat, under: &[], config: "" };
    let mut plan = Plan::new(([127, 0, 0, 1], 0).into(), Prompt::chat(1024, 400, false, 7));
    plan.requests = 1;
    let began = Instant::now();
    let sprag = targets::sprag(&how)?;
    plan.address = sprag.address;
    let seen = load::run(&plan)?;
    let took = began.elapsed().as_secs_f64() * 1000.0;
    if seen.ok != 1 {
        bail!("the first call failed: {}", seen.complaint.unwrap_or_default());
    }
    Ok(took)
}
