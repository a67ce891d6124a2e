//! From detection as written to the rules in use: a preset, and what is set over it.

use sprag_core::loops::{Action, Detector, Preset, Rules};

use crate::config::file::detection::{Detection, ExactScope, set};

/// The rules that all agents have unless they have their own.
pub(crate) fn rules(file: &Detection) -> Rules {
    let preset = file.preset.map_or(Preset::Balanced, Preset::from);
    change(Rules::preset(preset), file)
}

/// An agent's rules: its own preset, or everybody's rules, and what is set for it.
pub(crate) fn agent_rules(everybody: &Rules, file: &Detection) -> Rules {
    let base = match file.preset {
        Some(preset) => Rules::preset(preset.into()),
        None => everybody.clone(),
    };
    change(base, file)
}

fn change(mut rules: Rules, file: &Detection) -> Rules {
    set(&mut rules.prompt_scope, file.prompt_scope);
    if let Some(ladder) = &file.ladder {
        let ladder: Vec<Action> = ladder.iter().map(|action| (*action).into()).collect();
        for detector in Detector::ALL {
            let common = rules.common_mut(detector);
            if common.action.stops() {
                common.ladder.clone_from(&ladder);
            }
        }
    }
    file.progress.change(&mut rules.progress.common);
    set(&mut rules.progress.repeats, file.progress.repeats);
    set(&mut rules.progress.same_results, file.progress.same_results);
    set(&mut rules.progress.stall, file.progress.stall);
    set(&mut rules.progress.likeness, file.progress.likeness);
    set(&mut rules.progress.asked_again, file.progress.asked_again);
    set(&mut rules.progress.compactions, file.progress.compactions);

    file.exact.change(&mut rules.exact.common);
    set(&mut rules.exact.prompts, file.exact.prompts);
    set(&mut rules.exact.answers, file.exact.answers);
    if let Some(scope) = file.exact.scope {
        rules.exact.counts_window = scope == ExactScope::Window;
    }

    file.similar.change(&mut rules.similar.common);
    set(&mut rules.similar.threshold, file.similar.threshold);
    set(&mut rules.similar.needs_second_signal, file.similar.needs_second_signal);

    file.oscillation.change(&mut rules.oscillation.common);
    set(&mut rules.oscillation.longest_period, file.oscillation.longest_period);
    set(&mut rules.oscillation.laps, file.oscillation.laps);
    set(&mut rules.oscillation.result_laps, file.oscillation.result_laps);

    file.score.change(&mut rules.score.common);
    set(&mut rules.score.threshold, file.score.threshold);
    set(&mut rules.score.trips_at, file.score.trips_at);
    set(&mut rules.score.hamming, file.score.hamming);
    set(&mut rules.score.prompt_weight, file.score.prompt_weight);
    set(&mut rules.score.answer_weight, file.score.answer_weight);
    set(&mut rules.score.call_weight, file.score.call_weight);

    file.repeat.change(&mut rules.repeat.common);
    set(&mut rules.repeat.threshold, file.repeat.threshold_identical_requests);

    file.chant.change(&mut rules.chant.common);
    set(&mut rules.chant.repeats, file.chant.repeats);
    set(&mut rules.chant.bytes, file.chant.bytes);

    file.velocity.change(&mut rules.velocity.common);
    set(&mut rules.velocity.factor, file.velocity.factor);
    set(&mut rules.velocity.max_tokens_per_minute, file.velocity.max_tokens_per_minute);
    if let Some(usd) = file.velocity.max_usd_per_minute {
        rules.velocity.max_nano_usd_per_minute = (usd * 1e9).round() as u64;
    }
    rules
}
