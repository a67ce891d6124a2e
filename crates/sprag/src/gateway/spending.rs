//! The money of one call: which budgets it draws on, what is set aside for it, and what it came to.
//!
//! Money is set aside by the judge as its last check, and settled by the ticket. Limits in shadow are counted on
//! accounts of their own, and change nothing.

mod raise;
mod together;
mod unknown;
pub(super) mod unread;

use std::sync::Arc;
use std::time::Duration;

use sprag_core::event::{Ending, Event};
use sprag_core::id::RunId;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{
    Asked, Budget, Denied, Draw, Draws, Estimate, Habits, Policy, Reservation, Reserve, Spender, StageAction, Stop,
    Weighed, denied_refusal, draws, estimate, shortfall_refusal, unknown_refusal,
};
use sprag_core::price::{Price, cost};
use sprag_core::time::Timestamp;
use sprag_core::usage::{BYTES_PER_TOKEN, Usage};
use sprag_core::wire::{Call, Refusal, Reply};
use sprag_store::history::OpenCall;
use sprag_store::shared::SharedCall;
use sprag_store::state::{Lesson, RunPlace};
use xxhash_rust::xxh3::xxh3_64;

use self::together::Together;
use self::unknown::leave_out;
use super::elsewhere::refers_elsewhere;
use super::killed::or_killed;
use super::pilot::Pilot;
use super::seeding::{Late, Unseeded, seed};
use super::ticket::Ticket;
use crate::app::App;
use crate::config::Settings;
use crate::tokens::{PromptSample, Tally};

/// Bytes of an answer after which is looked again whether what is set aside still pays for it.
const LOOK_BYTES: u64 = 512;

/// How often what accounts have spent is read for one call, because it changed meanwhile: for a second or so. Among many calls that begin and end
/// at once it changes all the time.
const SEED_ATTEMPTS: u32 = 64;
/// What changes is on its way to the record for about so long.
const SEED_PAUSE: Duration = Duration::from_millis(2);
/// Between two attempts there are so many pauses at most.
const SEED_PAUSES: u32 = 10;

/// What is set aside for a call, and where.
#[derive(Debug, Default)]
pub(crate) struct Spending {
    draws: Draws,
    /// None for a call that has no price.
    price: Option<Price>,
    asked: Asked,
    /// A stream was asked for.
    is_stream: bool,
    estimate: Estimate,
    /// Nothing like it was seen before.
    is_first: bool,
    /// Input tokens as they are expected, for an answer whose provider does not tell until its end.
    input_tokens: u64,
    reserved: Option<Reservation>,
    reserved_in_shadow: Option<Reservation>,
    /// Accounts that must be opened first, of those in force and those in shadow.
    unseeded: [Unseeded; 2],
    /// How often what they have spent was read.
    seedings: u32,
    next_look: u64,
    tally: Tally,
    /// Output tokens that the provider had told at the last look.
    told: u64,
    /// It is a guess, and must wait until no other is under way.
    is_behind: bool,
    /// Others of its kind wait for it.
    pilot: Option<Pilot>,
    /// What all nodes together say; absent where this one decides.
    together: Option<Together>,
}

/// What a call asks, of whom, and where it stands.
pub(crate) struct Plan<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) policy: &'a Policy,
    pub(crate) call: &'a Call<'a>,
    pub(crate) price: Option<Price>,
    pub(crate) tree: &'a [RunPlace],
    pub(crate) habits: Habits,
    pub(crate) body: &'a [u8],
}

impl Spending {
    /// Plans the money of a call to a model: which accounts it draws on, and what it will cost.
    pub(crate) fn plan(app: &App, plan: Plan<'_>, ticket: &Ticket) -> Spending {
        let draws = plan.draws(app, ticket, ticket.event().at);
        let asked = asked(plan.call, plan.body, ticket.sample(), draws.reserve);
        let is_stream = plan.call.is_stream;
        let mut spending = Spending { draws, price: plan.price, asked, is_stream, ..Spending::default() };
        let (agent, model) = (&ticket.event().agent, plan.call.model.as_deref().unwrap_or_default());
        let known = Some(plan.habits).filter(|habits| habits.calls > 0).or_else(|| app.state.habits(agent, model));
        spending.expect(known);
        if is_stream && !spending.draws.enforced.is_empty() {
            // Should the answer come near a limit, it is counted while it passes.
            app.tokens.prepare(model);
        }
        spending.is_behind = spending.is_first && !spending.draws.enforced.is_empty();
        spending
    }

    /// Sets the money aside, on all accounts or on none. None where something must be [waited for](Spending::wait) first.
    pub(crate) fn reserve(&mut self, app: &App) -> Option<Weighed> {
        if self.is_behind {
            return None;
        }
        if self.together.is_some() {
            return self.take_granted(app);
        }
        let mut weighed = Weighed::default();
        let (kills, now) = (self.draws.kills_run, app.common_now());
        if self.reserved.is_none() {
            match self.set_aside(app, &self.draws.enforced, now) {
                Ok(reserved) => self.reserved = reserved,
                Err(Denied::Unseeded(places)) => {
                    self.unseeded[0] = places;
                    return None;
                }
                Err(denied) => {
                    weighed.stop = Some(denied_refusal(&denied, kills, now));
                    return Some(weighed);
                }
            }
        }
        if self.reserved_in_shadow.is_none() {
            match self.set_aside(app, &self.draws.shadow, now) {
                Ok(reserved) => self.reserved_in_shadow = reserved,
                Err(Denied::Unseeded(places)) => {
                    self.unseeded[1] = places;
                    return None;
                }
                Err(denied) => weighed.would_stop.push(denied_refusal(&denied, false, now).refusal),
            }
        }
        self.weigh_stages(&mut weighed);
        Some(weighed)
    }

    /// What follows from parts of budgets that are used up.
    fn weigh_stages(&self, weighed: &mut Weighed) {
        for (held, stage) in self.reserved.iter().flat_map(Reservation::stages_reached) {
            if let StageAction::Throttle { delay_ms } = stage.action {
                weighed.delay_ms = weighed.delay_ms.max(Some(delay_ms));
            }
            weighed.warning.get_or_insert_with(|| {
                format!("{} has used {} % of its ${} budget", held.draw.id, stage.at, held.draw.limit)
            });
        }
    }

    /// Waits for what the money cannot be set aside without: the first call of its kind, or what accounts have spent.
    ///
    /// # Errors
    /// When that cannot be read: a budget of which nobody knows what is left lets nothing pass.
    pub(crate) async fn wait(&mut self, app: &Arc<App>, tree: &[RunPlace], ticket: &mut Ticket) -> Result<(), Refusal> {
        match self.is_behind {
            true => self.follow_pilot(app, ticket).await,
            false => self.seed(app, tree).await?,
        }
        self.ask_again(app, tree, ticket).await
    }

    /// Waits until the call is the first of its kind, or it is known what its kind costs.
    async fn follow_pilot(&mut self, app: &App, ticket: &Ticket) {
        let event = ticket.event();
        let model = event.model.as_deref().unwrap_or_default();
        let lead = app.pilots.lead(xxh3_64(model.as_bytes()));
        // Who is killed meanwhile is refused by the judge.
        self.pilot = or_killed(lead, ticket.watch().as_mut()).await.ok().flatten();
        self.is_behind = false;
        // Whoever was ahead has shown meanwhile what such a call costs.
        self.expect(app.state.habits(&event.agent, model));
        if !self.is_first {
            self.pilot = None;
        }
    }

    /// Looks up what accounts have spent that must be opened.
    async fn seed(&mut self, app: &Arc<App>, tree: &[RunPlace]) -> Result<(), Refusal> {
        if self.seedings > 0 {
            tokio::time::sleep(SEED_PAUSE * self.seedings.min(SEED_PAUSES)).await;
        }
        self.seedings += 1;
        if self.seedings > SEED_ATTEMPTS {
            return Err(unknown_refusal());
        }
        let [enforced, shadow] = std::mem::take(&mut self.unseeded);
        match seed(app, &mut self.draws.enforced, enforced, tree).await {
            Ok(unknown) => self.go_without(app, &unknown)?,
            Err(error) => {
                tracing::error!(%error, "what was spent cannot be read, and a call is refused for it");
                return Err(unknown_refusal());
            }
        }
        match seed(app, &mut self.draws.shadow, shadow, tree).await {
            Ok(unknown) => leave_out(&mut self.draws.shadow, &unknown),
            Err(error) => {
                tracing::error!(%error, "what was spent cannot be read, and limits in shadow are left out");
                self.draws.shadow.clear();
            }
        }
        Ok(())
    }

    /// The call failed, or ended without teaching anything: whoever waits for it goes on.
    pub(crate) fn teaches_nothing(&mut self) {
        if let Some(pilot) = self.pilot.take() {
            pilot.fail();
        }
    }

    /// The call is about to be put on record. `runs` are its run and those above it.
    pub(crate) fn begin_record(&self, app: &App, event: &Event, runs: &[RunId]) -> Late {
        Late::begin(app, event, runs, [&self.draws.enforced, &self.draws.shadow])
    }

    /// What the call draws on, in force and in shadow.
    pub(crate) fn draws(&self) -> [&[Draw]; 2] {
        [&self.draws.enforced, &self.draws.shadow]
    }

    /// Whether a budget is in force for the call.
    pub(crate) fn is_limited(&self) -> bool {
        !self.draws.enforced.is_empty()
    }

    /// Whether the call has a price.
    pub(crate) fn is_priced(&self) -> bool {
        self.price.is_some()
    }

    /// Tokens that the call is expected to use, for rates.
    pub(crate) fn tokens(&self) -> u64 {
        self.estimate.tokens
    }

    /// What is set aside.
    pub(crate) fn reserved(&self) -> NanoUsd {
        self.reserved.as_ref().map_or(NanoUsd::ZERO, |reserved| reserved.amount)
    }

    /// What is to be on record before the call goes out, in case Sprag ends before the call does.
    pub(crate) fn open_call(&self, event: &Event) -> Option<OpenCall> {
        let reserved = Some(self.reserved()).filter(|reserved| *reserved > NanoUsd::ZERO)?;
        Some(OpenCall {
            id: event.id.clone(),
            at: event.at,
            agent: event.agent.clone(),
            key: event.key.clone(),
            run: event.run.clone(),
            provider: event.provider.clone(),
            dialect: event.dialect,
            path: event.path.clone(),
            model: event.model.clone(),
            reserved,
        })
    }

    /// Sets more aside for an answer that has come further than what is set aside pays for.
    ///
    /// # Errors
    /// When there is no more: the answer must be cut.
    pub(crate) fn follow(
        &mut self,
        app: &Arc<App>,
        call: Option<&Arc<SharedCall>>,
        reply: &Reply,
        sample: &PromptSample,
        event: &Event,
    ) -> Result<(), Stop> {
        self.hear_raise(app)?;
        let (Some(price), Some(reserved)) = (&self.price, &mut self.reserved) else { return Ok(()) };
        let so_far = answer_bytes(reply);
        // What a model thinks may be told in numbers alone.
        let told = reply.usage.map_or(0, |usage| usage.output);
        if so_far < self.next_look && told <= self.told {
            return Ok(());
        }
        (self.next_look, self.told) = (so_far + LOOK_BYTES, told);
        let spent = cost(price, &used_so_far(reply, so_far, self.input_tokens));
        if spent <= reserved.amount {
            return Ok(());
        }
        // First with room to go on for a while, then with just what it has come to.
        let with_room = NanoUsd(spent.0.saturating_add(spent.0 / 4));
        if let (Some(together), Some(call)) = (&mut self.together, call) {
            // Counted only where it will most likely matter, by what this node knows.
            let is_tight = together.is_short() || app.state.room(reserved) < with_room - reserved.amount;
            let counted = is_tight.then(|| {
                let model = event.model.as_deref().unwrap_or_default();
                cost(price, &app.tokens.so_far(model, sample, reply, &mut self.tally))
            });
            together.raise(app, call, [with_room, spent], counted);
            return Ok(());
        }
        if app.state.raise(reserved, with_room).or_else(|_| app.state.raise(reserved, spent)).is_ok() {
            return Ok(());
        }
        // Its length is only a guess at its cost: nothing is cut off before it is counted.
        let model = event.model.as_deref().unwrap_or_default();
        let counted = cost(price, &app.tokens.so_far(model, sample, reply, &mut self.tally));
        let raised = app.state.raise(reserved, counted);
        // The nearer the end, the sooner the next look.
        let room = app.state.room(reserved) + reserved.amount - counted;
        let tokens_left = (u128::try_from(room.0).unwrap_or(0) * 1000).checked_div(u128::from(price.rates.output.0));
        let tokens_left = tokens_left.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(u64::MAX);
        self.next_look = so_far + tokens_left.clamp(1, LOOK_BYTES / BYTES_PER_TOKEN) * BYTES_PER_TOKEN;
        raised.map_err(|shortfall| shortfall_refusal(&shortfall, self.draws.kills_run, app.common_now()))
    }

    /// What a call costs whose answer was made and not read: nobody waited for its end, or it broke off. It is charged
    /// what was set aside, for the provider charges for it too. A stream ends when its reader leaves, and what was said
    /// until then is counted. But a count is an estimate: where not a cent may be passed, it is charged the same way.
    pub(crate) fn unread_cost(&self, event: &Event, reply: &Reply, status: Option<u16>) -> Option<NanoUsd> {
        let was_made = match status {
            Some(status) => status < 400,
            None => matches!(event.ending, Ending::ClientGone | Ending::Killed | Ending::TimedOut),
        };
        // In the background an answer is made after this one, which only promises it.
        let is_promise = matches!(reply.finish.as_deref(), Some("queued" | "in_progress"));
        let is_stream = self.is_stream || event.stream;
        let is_known = match is_stream {
            true => self.draws.reserve == Reserve::Expected || (reply.complete && reply.usage.is_some()),
            false => (reply.complete && !is_promise) || reply.usage.is_some(),
        };
        let is_charged = was_made && !is_known && reply.error.is_none() && self.price.is_some();
        is_charged.then(|| self.reserved()).filter(|reserved| *reserved > NanoUsd::ZERO)
    }

    /// What the call teaches about those after it.
    pub(crate) fn lesson(&self, usage: &Usage) -> Option<Lesson> {
        let price = self.price.as_ref()?;
        let input = cost(price, &Usage { output: 0, reasoning: 0, audio_output: 0, ..*usage });
        let input_full_tokens = match price.rates.input.0 {
            0 => usage.prompt_tokens() as f64,
            pico => input.0 as f64 * 1000.0 / pico as f64,
        };
        Some(Lesson {
            prompt_bytes: self.asked.prompt_bytes,
            input_full_tokens,
            output_tokens: usage.output / u64::from(self.asked.choices.max(1)),
        })
    }

    /// Gives back what was set aside and books what the call cost. Stages that are reached by that are put on record.
    pub(crate) fn settle(&mut self, app: &App, event: &Event, runs: &[RunId], late: Late) {
        let cost = event.cost.unwrap_or_default();
        let draws = std::mem::take(&mut self.draws);
        let crossed = match self.reserved.take() {
            Some(reserved) => app.state.settle_money(&reserved, cost),
            None => app.state.charge(&draws.enforced, cost),
        };
        match self.reserved_in_shadow.take() {
            Some(reserved) => drop(app.state.settle_money(&reserved, cost)),
            None => drop(app.state.charge(&draws.shadow, cost)),
        }
        self.pilot = None;
        late.end(app, event, runs, [&draws.enforced, &draws.shadow]);
        // Where all nodes count together, they say what is reached.
        let crossed = if self.together.is_some() { Vec::new() } else { crossed };
        for crossed in crossed {
            app.record_reached(&crossed, &event.agent);
        }
    }

    fn set_aside(&self, app: &App, draws: &[Draw], now: Timestamp) -> Result<Option<Reservation>, Denied> {
        if draws.is_empty() {
            return Ok(None);
        }
        let (amount, least) = self.wanted();
        app.state.reserve(draws, amount, least, now).map(Some)
    }

    /// How much is to be set aside, and the part of it that is no guess.
    fn wanted(&self) -> (NanoUsd, NanoUsd) {
        match &self.price {
            Some(_) => (self.estimate.amount, self.estimate.least()),
            // A call without a price must still meet a budget that is used up.
            None => (NanoUsd(1), NanoUsd(1)),
        }
    }

    /// Estimates the call by what calls like it used.
    fn expect(&mut self, habits: Option<Habits>) {
        let free = Price::default();
        let price = self.price.as_ref().unwrap_or(&free);
        self.estimate = estimate(&self.asked, price, habits.as_ref(), self.draws.reserve);
        let per_byte = habits.map_or(0.0, |habits| habits.tokens_per_byte);
        self.input_tokens = match per_byte > 0.0 {
            true => (self.asked.prompt_bytes as f64 * f64::from(per_byte)) as u64,
            false => self.asked.prompt_bytes / BYTES_PER_TOKEN,
        };
        self.is_first = self.estimate.guessed > NanoUsd::ZERO;
        // What calls like it used may be more than a limit ever allows. That alone is no reason to refuse this one, for
        // refused calls teach nothing, and it would never end.
        let tightest = self.draws.enforced.iter().map(|draw| draw.limit).min();
        let never_fits = tightest.is_some_and(|limit| self.estimate.amount > limit);
        if self.draws.reserve == Reserve::Expected && never_fits {
            let input = cost(price, &Usage { input: self.input_tokens, ..Usage::default() });
            self.estimate.guessed = (self.estimate.amount - input).max(self.estimate.guessed);
        }
    }
}

impl Plan<'_> {
    fn draws(&self, app: &App, ticket: &Ticket, now: Timestamp) -> Draws {
        Payer { settings: self.settings, policy: self.policy, tree: self.tree }.draws(app, ticket, now)
    }
}

/// Who pays for a call, whatever it is.
pub(crate) struct Payer<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) policy: &'a Policy,
    pub(crate) tree: &'a [RunPlace],
}

impl Payer<'_> {
    fn draws(&self, app: &App, ticket: &Ticket, now: Timestamp) -> Draws {
        let key = ticket.key().map(|entry| (entry.key.id.as_str(), &entry.key.budget));
        let (budget, everything) = (&self.policy.budget, &self.settings.budget.budget);
        let is_set = |budget: &Budget| budget.is_set();
        if !is_set(budget) && !is_set(everything) && !key.is_some_and(|(_, budget)| is_set(budget)) {
            return Draws::default();
        }
        let agent = &ticket.event().agent;
        let runs: Vec<RunId> = self.tree.iter().map(|place| place.id.clone()).collect();
        let (day, month) = app.windows.at(&self.settings.budget.zone, app.common_time(now));
        draws(&Spender { agent, key, budget, everything, runs: &runs, day, month })
    }
}

fn asked(call: &Call<'_>, body: &[u8], sample: &PromptSample, reserve: Reserve) -> Asked {
    // Only an upper bound must know what the body does not show.
    let is_strict = reserve == Reserve::WorstCase;
    Asked {
        prompt_bytes: sample.bytes(),
        doubtful_bytes: sample.doubtful_bytes(),
        attachments: sample.inlined(),
        is_open_ended: is_strict && (call.is_continued || refers_elsewhere(body)),
        max_output_tokens: call.max_output_tokens,
        choices: call.choices,
    }
}

/// What an answer has used so far. What the provider has not told yet is guessed by its length.
fn used_so_far(reply: &Reply, bytes: u64, input_tokens: u64) -> Usage {
    let mut usage = reply.usage.unwrap_or(Usage { input: input_tokens, ..Usage::default() });
    usage.output = usage.output.max(bytes / BYTES_PER_TOKEN);
    usage
}

fn answer_bytes(reply: &Reply) -> u64 {
    let calls = reply.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>();
    reply.text_bytes.saturating_add(reply.reasoning_bytes).saturating_add(calls as u64)
}
