//! A call is over.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use redis::Value;
use sprag_core::id::{AgentName, RunId};
use sprag_core::money::NanoUsd;
use sprag_core::policy::AccountId;
use sprag_core::run::Remember;

use super::beginning::distinct;
use super::heard::Heard;
use super::packed::{Blob, DrawTable, EndTable, HowTable, LookTable, PutTable, WatchTable, hex, pack, totals_of};
use super::reading::{Parts, bytes, totals, watch};
use super::scripts::{END, LOOK, PUT};
use super::told::Drawn;
use super::{Away, End, EndHow, Ended, NewWatch, RatesEnd, RunNow, SettledAccount, Shared, SharedCall, Watch, keys};
use crate::run_key::RunKey;

impl Shared {
    /// Ends a call: adds what it cost, gives back what it held, leaves what it learned. A second time changes nothing.
    ///
    /// # Errors
    /// When Redis does not answer in time. It is told again when it is back; the caller has nothing more to do.
    pub async fn end(&self, call: &SharedCall, end: &End<'_>) -> Result<Ended, Away> {
        let node = &*self.node;
        let is_again = call.is_over.swap(true, Ordering::Relaxed);
        if !is_again {
            node.calls.release(call.held.iter().cloned());
        }
        let tables = self.end_tables(call, end, is_again);
        let told = tables.into_iter().map(|table| async move {
            let place = table.head.p.clone();
            let telling = node.calls.telling(table);
            let answer = node.link.call(&END, &place, &telling.arguments()).await?;
            telling.done();
            read_part(answer)
        });
        let mut ended = Ended::default();
        for part in join_all(told).await.into_iter().collect::<Result<Vec<_>, Away>>()? {
            ended.totals = ended.totals.or(part.totals);
            ended.watch = ended.watch.or(part.watch);
            ended.agent_watch = ended.agent_watch.or(part.agent_watch);
            for (key, account) in part.accounts {
                node.heard.hear(&key, account.heard.clone());
                let drawn = call.accounts.iter().find(|drawn| drawn.key == key).map(|drawn| &drawn.draw.id);
                let id = drawn.or_else(|| end.late.iter().find(|id| keys::account(id).key == key));
                ended.accounts.extend(id.map(|id| account.of(id.clone())));
            }
        }
        Ok(ended)
    }

    /// Writes what detection keeps of a run, or of the agent, after a merge with what another node had written
    /// meanwhile. Gives what a third one has written since: then nothing was written.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn put_watch(
        &self,
        agent: &AgentName,
        run: Option<&RunId>,
        new: &NewWatch<'_>,
    ) -> Result<Option<Watch>, Away> {
        let place = keys::of_agent(agent);
        let run = run.map(ToString::to_string);
        let mut blobs = Vec::new();
        let table = PutTable { head: self.node.head(&place, ""), run, watch: watch_table(new, &mut blobs) };
        blobs.insert(0, pack(&table));
        match self.node.link.call(&PUT, &place, &blobs).await? {
            Value::Nil => Ok(None),
            other => watch(bytes(other)?).map(Some),
        }
    }

    /// A run as it stands; none if Redis knows nothing of it.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn run(&self, key: &RunKey) -> Result<Option<RunNow>, Away> {
        let place = keys::of_agent(&key.agent);
        let table = LookTable { head: self.node.head(&place, ""), run: key.id.to_string() };
        match self.node.link.call(&LOOK, &place, &[pack(&table)]).await? {
            Value::Nil => Ok(None),
            value => {
                let mut parts = Parts::of(value)?;
                let totals = totals_of(&parts.totals()?);
                Ok(Some(RunNow { totals, is_opened: parts.number()? == 1, in_flight: parts.count()? }))
            }
        }
    }

    /// The tables of a call that is over, by place. The first one is of its agent.
    fn end_tables(&self, call: &SharedCall, end: &End<'_>, again: bool) -> Vec<EndTable> {
        let node = &*self.node;
        let how = match &end.how {
            EndHow::Settled(settlement) => HowTable::of(settlement),
            EndHow::Withdrawn => HowTable { is_withdrawn: true, ..HowTable::default() },
        };
        let is_cluster = node.is_cluster();
        let late: Vec<keys::Place> = end.late.iter().map(keys::account).collect();
        let mut places = call.places.clone();
        if is_cluster {
            for place in &late {
                if !places.contains(&place.prefix) {
                    places.push(place.prefix.clone());
                }
            }
        }
        let lies_in = |place: &str, at: usize| if is_cluster { place == places[at] } else { at == 0 };
        let table = |at: usize| {
            let is_main = at == 0;
            let drawn: Vec<&Drawn> = distinct(&call.accounts).filter(|drawn| lies_in(&drawn.place, at)).collect();
            let account = |drawn: &&Drawn| DrawTable {
                heard: node.heard.get(&drawn.key),
                ..DrawTable::of(drawn.key.clone(), drawn.draw.span)
            };
            let late = late.iter().filter(|place| lies_in(&place.prefix, at)).map(|place| place.key.clone());
            let mut blobs = Vec::new();
            let accounts = Blob::put(&mut blobs, pack(&drawn.iter().map(account).collect::<Vec<_>>()));
            let of_main = |watch: Option<NewWatch<'_>>, blobs: &mut Vec<Vec<u8>>| {
                watch.filter(|_| is_main).map(|new| watch_table(&new, blobs))
            };
            let (watch, agent_watch) = (of_main(end.watch, &mut blobs), of_main(end.agent_watch, &mut blobs));
            let habits = end.habits.filter(|_| is_main);
            let of_run = habits.and_then(|habits| habits.run).map(|bytes| Blob::put(&mut blobs, bytes.to_vec()));
            let of_model = habits.and_then(|habits| habits.of_model);
            let of_model = of_model
                .map(|(model, bytes)| (keys::habits(&places[at], model), Blob::put(&mut blobs, bytes.to_vec())));
            EndTable {
                head: node.head(&places[at], &call.id),
                how: how.clone(),
                agent: is_main,
                run: call.run.as_ref().filter(|_| is_main).map(ToString::to_string),
                born: call.born.clone().filter(|_| is_main),
                again,
                used: match end.rates {
                    RatesEnd::Used { tokens } => Some(tokens),
                    RatesEnd::GivenBack => None,
                },
                uncounts: end.uncounts_repeat,
                left: if is_main { end.remember.clone() } else { Remember::default() },
                watch,
                agent_watch,
                habits: of_run,
                of_model,
                drawn: drawn.iter().map(|drawn| drawn.key.clone()).collect(),
                accounts,
                late: late.collect(),
                blobs,
            }
        };
        (0..places.len()).map(table).collect()
    }
}

/// Parts of the answer.
const ENDED_PARTS: usize = 4;

struct PartEnded {
    totals: Option<crate::state::RunTotals>,
    accounts: Vec<(String, AccountNow)>,
    watch: Option<Watch>,
    agent_watch: Option<Watch>,
}

/// An account after a call was settled.
struct AccountNow {
    before: i64,
    reserved: i64,
    heard: Heard,
}

impl AccountNow {
    fn of(&self, id: AccountId) -> SettledAccount {
        let (before, settled, reserved) = (NanoUsd(self.before), NanoUsd(self.heard.s), NanoUsd(self.reserved));
        SettledAccount { id, before, settled, reserved }
    }
}

fn read_part(value: Value) -> Result<PartEnded, Away> {
    let mut parts = Parts::unpacked(value, ENDED_PARTS)?;
    let of_run = match parts.value()? {
        Value::Nil => None,
        value => Some(totals_of(&totals(value)?)),
    };
    let accounts = parts.each(|mut account| {
        let (key, before, s, reserved) = (account.text()?, account.number()?, account.number()?, account.number()?);
        let heard = Heard { s, g: account.text()?, v: account.number()?, f: account.number()? };
        Ok((key, AccountNow { before, reserved, heard }))
    })?;
    Ok(PartEnded { totals: of_run, accounts, watch: parts.watch()?, agent_watch: parts.watch()? })
}

fn watch_table(new: &NewWatch<'_>, blobs: &mut Vec<Vec<u8>>) -> WatchTable {
    let value = [hex(new.version).as_bytes(), new.bytes].concat();
    WatchTable { based: new.based_on.map(hex), value: Blob::put(blobs, value) }
}
