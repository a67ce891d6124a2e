//! Loop detection as written. What is left out comes from the preset.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sprag_core::loops::{self, Common};

/// How loops are detected, and what follows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Detection {
    /// Rules to start from: "balanced", "strict", "observe" (everything in shadow), or another gateway's to the letter: "agentgazer", "fairvisor", "agentwall". Without one: balanced.
    #[schemars(example = &"balanced")]
    pub preset: Option<Preset>,
    /// What counts as the prompt: "turn" (what is new since the model last spoke) or "last_user_message".
    #[schemars(example = &"turn")]
    pub prompt_scope: Option<PromptScope>,
    /// Actions of all detectors that stop a run, strike by strike, in place of their own.
    #[schemars(example = &["nudge", "pause", "kill_run"])]
    pub ladder: Option<Vec<Action>>,
    /// Repeated work without new information.
    pub progress: Progress,
    /// The same prompt or answer again.
    pub exact: Exact,
    /// Nearly the same prompt again.
    pub similar: Similar,
    /// A few prompts in turns.
    pub oscillation: Oscillation,
    /// Similar prompts, similar answers and repeated calls of an agent, weighted. The kill switch of an agent turns it on.
    pub score: Score,
    /// The same request again, byte for byte.
    pub repeat: Repeat,
    /// One answer that repeats itself while it streams; the stream is cut.
    pub chant: Chant,
    /// Money or tokens per minute far above the usual.
    pub velocity: Velocity,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident => $core:ty { $($(#[$word_doc:meta])* $word:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$word_doc])* $word),* }

        impl From<$name> for $core {
            fn from(word: $name) -> $core {
                match word { $($name::$word => <$core>::$word),* }
            }
        }
    };
}

words! {
    /// A set of rules under one name.
    Preset => loops::Preset {
        /// The default.
        Balanced,
        /// The thresholds of the documents that Sprag comes from.
        Strict,
        /// Everything in shadow.
        Observe,
        /// Similarity score per agent.
        Agentgazer,
        /// Identical requests.
        Fairvisor,
        /// Exact, similar and alternating prompts.
        Agentwall,
    }
}

words! {
    /// What counts as the prompt.
    PromptScope => loops::PromptScope {
        /// What is new since the model last spoke.
        Turn,
        /// The last user message, also while tools work on it.
        LastUserMessage,
    }
}

words! {
    /// Whether a detector runs, and whether anything follows.
    Mode => loops::Mode {
        /// It does not run.
        Off,
        /// It runs and changes nothing.
        Shadow,
        /// Its action is taken.
        Enforce,
    }
}

words! {
    /// What follows when a detector trips.
    Action => loops::Action {
        /// The step is flagged.
        Warn,
        /// The model is told what it repeats.
        Nudge,
        /// The request waits.
        Throttle,
        /// This request is refused.
        Reject,
        /// The run is stopped until a person approves.
        Pause,
        /// The run is stopped.
        KillRun,
        /// The agent is set inactive.
        DeactivateAgent,
    }
}

words! {
    /// How a window in seconds is counted.
    WindowMode => loops::WindowMode {
        /// What happened in the last seconds.
        Sliding,
        /// Each hit begins the seconds anew.
        Refresh,
        /// Windows follow one another.
        Fixed,
    }
}

words! {
    /// Which runs a detector watches.
    RunKind => loops::RunKind {
        /// All of them.
        All,
        /// Those that the caller named.
        Declared,
    }
}

/// A detector's own keys, and those that all of them have.
macro_rules! detector {
    ($(#[$doc:meta])* $name:ident { $($(#[$key_doc:meta])* $key:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// "off", "shadow" (report what would have happened, change nothing) or "enforce".
            #[schemars(example = &"enforce")]
            pub mode: Option<Mode>,
            /// What follows: "warn", "nudge", "throttle", "reject", "pause", "kill_run" or "deactivate_agent".
            #[schemars(example = &"kill_run")]
            pub action: Option<Action>,
            /// Actions strike by strike, in place of `action`; the last one stays.
            #[schemars(example = &["nudge", "kill_run"])]
            pub ladder: Option<Vec<Action>>,
            /// How many requests it looks back; 0 is as many as it keeps.
            #[schemars(range(min = 0, max = 100), example = &24)]
            pub window_requests: Option<u32>,
            /// How many seconds it looks back; 0 is no bound.
            #[schemars(range(min = 0, max = 86_400), example = &0)]
            pub window_seconds: Option<u32>,
            /// How the seconds count: "sliding", "refresh" (each hit begins them anew) or "fixed".
            #[schemars(example = &"sliding")]
            pub window_mode: Option<WindowMode>,
            /// Which runs it watches: "all", or those that the caller named: "declared".
            #[schemars(example = &"all")]
            pub runs: Option<RunKind>,
            $($(#[$key_doc])* pub $key: $kind,)*
        }

        impl $name {
            /// Puts the common keys that are set in place of the preset's.
            pub(crate) fn change(&self, common: &mut Common) {
                set(&mut common.mode, self.mode);
                set(&mut common.action, self.action);
                if let Some(ladder) = &self.ladder {
                    common.ladder = ladder.iter().map(|action| (*action).into()).collect();
                } else if self.action.is_some() {
                    common.ladder.clear();
                }
                set(&mut common.window.requests, self.window_requests);
                set(&mut common.window.seconds, self.window_seconds);
                set(&mut common.window.mode, self.window_mode);
                set(&mut common.runs, self.runs);
            }
        }
    };
}

/// Puts a value that was written in place of another one.
pub(crate) fn set<T: From<W>, W: Copy>(place: &mut T, written: Option<W>) {
    if let Some(value) = written {
        *place = value.into();
    }
}

detector! {
    /// Repeated work without new information.
    Progress {
        /// Repetitions of a step, or of the steps of a cycle, that are too many.
        #[schemars(range(min = 2, max = 24), example = &5.0)]
        repeats: Option<f64>,
        /// The same result this often in a row is too often, whatever was asked for.
        #[schemars(range(min = 2, max = 24), example = &6.0)]
        same_results: Option<f64>,
        /// The account of steps that resemble earlier ones and bring nothing new that is too much.
        #[schemars(range(min = 2, max = 100), example = &9.0)]
        stall: Option<f64>,
        /// Share of common words from which two texts are nearly the same.
        #[schemars(range(min = 0.5, max = 1.0), example = &0.85)]
        likeness: Option<f64>,
        /// One conversation answered and asked again this often in a row is too often.
        #[schemars(range(min = 2, max = 1000), example = &12)]
        asked_again: Option<u32>,
        /// Rewritings of the history without new work in between that are too many.
        #[schemars(range(min = 2, max = 100), example = &4)]
        compactions: Option<u32>,
    }
}

detector! {
    /// The same prompt or answer again.
    Exact {
        /// The occurrence of a prompt that trips it.
        #[schemars(range(min = 2, max = 100), example = &2)]
        prompts: Option<u32>,
        /// The occurrence of an answer that trips it.
        #[schemars(range(min = 2, max = 100), example = &3)]
        answers: Option<u32>,
        /// "adjacent": right after itself; "window": any earlier occurrence counts.
        #[schemars(example = &"adjacent")]
        scope: Option<ExactScope>,
    }
}

/// Which earlier occurrences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExactScope {
    /// Those right before.
    Adjacent,
    /// Any in the window.
    Window,
}

detector! {
    /// Nearly the same prompt again.
    Similar {
        /// Shared words of all words above which prompts are similar.
        #[schemars(range(min = 0.1, max = 1.0), example = &0.85)]
        threshold: Option<f64>,
        /// Trip only together with a second signal: the same call, the same or a similar answer, no new result.
        #[schemars(example = &true)]
        needs_second_signal: Option<bool>,
    }
}

detector! {
    /// A few prompts in turns.
    Oscillation {
        /// Longest period: 2 is A B A B.
        #[schemars(range(min = 2, max = 16), example = &8)]
        longest_period: Option<u32>,
        /// Laps that trip it.
        #[schemars(range(min = 2, max = 16), example = &2)]
        laps: Option<u32>,
        /// The same where turns of tool results are among them.
        #[schemars(range(min = 2, max = 16), example = &3)]
        result_laps: Option<u32>,
    }
}

detector! {
    /// Similar prompts, similar answers and repeated calls of an agent, weighted.
    Score {
        /// Trips above this score.
        #[schemars(range(min = 1, max = 50), example = &10.0)]
        threshold: Option<f64>,
        /// Trips also at exactly the threshold.
        #[schemars(example = &false)]
        trips_at: Option<bool>,
        /// Texts are similar below this Hamming distance of their SimHash.
        #[schemars(range(min = 1, max = 32), example = &3)]
        hamming: Option<u32>,
        /// Weight of a similar prompt.
        #[schemars(range(min = 0, max = 100), example = &1.0)]
        prompt_weight: Option<f64>,
        /// Weight of a similar answer.
        #[schemars(range(min = 0, max = 100), example = &2.0)]
        answer_weight: Option<f64>,
        /// Weight of a repeated call.
        #[schemars(range(min = 0, max = 100), example = &1.5)]
        call_weight: Option<f64>,
    }
}

detector! {
    /// The same request again, byte for byte.
    Repeat {
        /// Identical requests that trip it.
        #[schemars(range(min = 2, max = 10_000), example = &4)]
        threshold_identical_requests: Option<u32>,
    }
}

detector! {
    /// One answer that repeats itself while it streams.
    Chant {
        /// Repetitions of one passage that trip it.
        #[schemars(range(min = 3, max = 1000), example = &20)]
        repeats: Option<u32>,
        /// Bytes that the repetition must cover.
        #[schemars(range(min = 200, max = 65_536), example = &2000)]
        bytes: Option<u32>,
    }
}

detector! {
    /// Money or tokens per minute far above the usual.
    Velocity {
        /// Times the agent's own usual rate that is too much; 0 is no bound.
        #[schemars(range(min = 0, max = 1000), example = &10.0)]
        factor: Option<f64>,
        /// Tokens per minute that are too many; 0 is no cap.
        #[schemars(range(min = 0), example = &0)]
        max_tokens_per_minute: Option<u64>,
        /// Dollars per minute that are too many; 0 is no cap.
        #[schemars(range(min = 0, max = 1_000_000), example = &0.0)]
        max_usd_per_minute: Option<f64>,
    }
}
