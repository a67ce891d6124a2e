//! `[state]`: the Redis that several Sprags share. Nothing that is said about it shows a password.

use std::time::Duration;

use sprag_store::shared::Address;

use super::told;
use crate::config::file;
use crate::config::problem::Problem;
use crate::config::settings::State;

/// The settings; problems where the address makes no sense.
pub(super) fn resolve(file: &file::State, problems: &mut Vec<Problem>) -> State {
    let address = file.redis.as_ref().map(|redis| Address::parse(redis.reveal()));
    problems.extend(address.and_then(Result::err).map(|bad| told("state.redis", &bad)));
    let timeout = Duration::from_millis(file.timeout_ms);
    State { redis: file.redis.clone(), timeout, on_loss: file.on_state_loss }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::file::{OnStateLoss, StateLoss};
    use crate::config::sandbox::Sandbox;

    #[test]
    fn a_sprag_on_its_own_shares_nothing() {
        let state = Sandbox::new("").load().unwrap().settings.state;
        assert!(state.redis.is_none());
        assert_eq!(state.timeout, Duration::from_millis(250));
        assert_eq!((state.on_loss.budgets, state.on_loss.detection), (StateLoss::Closed, StateLoss::Open));
    }

    #[test]
    fn each_control_has_a_say_of_its_own() {
        let text = "[state]\nredis = \"rediss://me:planted@redis.example:6380/2\"\ntimeout_ms = 40\n\
                    [state.on_state_loss]\nbudgets = \"open\"\nrate_limits = \"closed\"\n";
        let settings = Sandbox::new(text).load().unwrap().settings;
        assert_eq!(settings.state.redis.unwrap().reveal(), "rediss://me:planted@redis.example:6380/2");
        let expected =
            OnStateLoss { budgets: StateLoss::Open, rate_limits: StateLoss::Closed, ..OnStateLoss::default() };
        assert_eq!(settings.state.on_loss, expected);
        let shown = serde_json::to_string(settings.values.list()).unwrap();
        assert!(!shown.contains("planted"), "{shown}");
    }

    #[test]
    fn variables_set_it_too() {
        let variables = [("SPRAG_STATE_REDIS", "redis://h:1/"), ("SPRAG_STATE_ON_STATE_LOSS_BUDGETS", "open")];
        let state = Sandbox::new("").with_env(&variables).load().unwrap().settings.state;
        assert_eq!((state.redis.unwrap().reveal(), state.on_loss.budgets), ("redis://h:1/", StateLoss::Open));
    }

    #[test]
    fn what_makes_no_sense_is_said_without_the_password() {
        for url in ["http://me:planted@h/", "redis://me:planted@h:port/", "planted"] {
            let told = Sandbox::new(&format!("[state]\nredis = \"{url}\"\n")).load().unwrap_err().to_string();
            assert!(told.contains("state.redis") && told.contains("redis://"), "{told}");
            assert!(!told.contains("planted"), "{told}");
        }
        let told = Sandbox::new("[state.on_state_loss]\nbudgets = \"shut\"\n").load().unwrap_err().to_string();
        let expected = ["state.on_state_loss.budgets", "open", "closed"];
        assert!(expected.iter().all(|part| told.contains(part)), "{told}");
    }
}
