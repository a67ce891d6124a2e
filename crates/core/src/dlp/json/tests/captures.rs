//! What real clients sent, where it is at hand beside the checkout.

use std::io::Read;

use serde_json::Value;

use super::*;
use crate::wire::Call;

#[test]
fn bodies_of_real_clients_are_read_the_same_way_each_time() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/clients");
    let Ok(files) = std::fs::read_dir(folder) else {
        println!("skipped: no captures beside the checkout");
        return;
    };
    let (mut bodies, seen) = (0, Seen::new(1));
    for file in files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "gz")) {
        let mut lines = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(&file).unwrap()).read_to_string(&mut lines).unwrap();
        for line in lines.lines() {
            let exchange: Value = serde_json::from_str(line).unwrap();
            let path = exchange["request"]["path"].as_str().unwrap().split('?').next().unwrap();
            let dialect = Dialect::of_request("POST", path);
            for (way, side) in [(Direction::Request, "request"), (Direction::Answer, "response")] {
                let body = &exchange[side]["body"];
                if !body.is_object() {
                    continue;
                }
                let body = body.to_string();
                let (out, sightings) = inspected(&inspector(), way, dialect, &body);
                bodies += 1;
                assert!(sightings.total > 0 || out == body);
                if way == Direction::Request && dialect != Dialect::Opaque {
                    let call = Call::parse(dialect, path, body.as_bytes()).unwrap();
                    let items = ranges_of(body.as_bytes(), call.items.iter().chain(&call.fixed).copied());
                    let (inspector, mut noted) = (inspector(), Sightings::default());
                    let done = inspect_json(&inspector, way, dialect, body.as_bytes(), &items, Some(&seen), &mut noted);
                    assert_eq!(apply_edits(body.as_bytes(), &done.edits), out.as_bytes());
                    assert_eq!(noted, sightings, "remembered or not, it is the same");
                }
            }
        }
    }
    assert!(seen.items() > 0);
    println!("{bodies} bodies");
}
