//! Redis is back: what the node did by itself meanwhile is added.

use std::collections::BTreeMap;

use redis::Value;
use sprag_core::limits::MISSED_AT_ONCE;

use super::heard::Heard;
use super::packed::{DrawTable, MissedRunTable, ReconcileTable, amount, pack, totals_table};
use super::reading::Parts;
use super::scripts::RECONCILE;
use super::{Away, Missed, Shared, keys};

impl Shared {
    /// Adds what this node did by itself while Redis was away, a bounded number of runs and accounts at a time.
    ///
    /// # Errors
    /// When Redis does not answer in time. The same `missed` can be sent again: each part of it counts once.
    pub async fn reconcile(&self, missed: &Missed) -> Result<(), Away> {
        let node = &*self.node;
        let mut places: BTreeMap<String, (Vec<MissedRunTable>, Vec<DrawTable>)> = BTreeMap::new();
        for run in &missed.runs {
            let table = MissedRunTable {
                id: run.id.to_string(),
                parent: run.parent.as_ref().map(ToString::to_string),
                origin: run.origin,
                added: totals_table(&run.added),
                known: totals_table(&run.known),
            };
            places.entry(keys::of_agent(&run.agent)).or_default().0.push(table);
        }
        for account in &missed.accounts {
            let keys::Place { prefix, key } = keys::account(&account.id);
            let heard = node.heard.get(&key).filter(|heard| heard.f == account.span.start.0);
            // What Redis said itself comes first: this node may know of calls whose end is still to be told.
            let seed = heard.is_none().then(|| amount(account.before));
            let table = DrawTable { heard, seed, spent: amount(account.spent), ..DrawTable::of(key, account.span) };
            places.entry(prefix).or_default().1.push(table);
        }
        for (place, (runs, accounts)) in places {
            let count = runs.len().max(accounts.len()).div_ceil(MISSED_AT_ONCE);
            let mut runs = runs.chunks(MISSED_AT_ONCE);
            let mut accounts = accounts.chunks(MISSED_AT_ONCE);
            for number in 0..count {
                let head = node.head(&place, &format!("{}:{number}", missed.id));
                let runs = runs.next().unwrap_or_default().to_vec();
                let accounts = accounts.next().unwrap_or_default().to_vec();
                let answer =
                    node.link.call(&RECONCILE, &place, &[pack(&ReconcileTable { head, runs, accounts })]).await?;
                self.hear_reconciled(answer)?;
            }
        }
        Ok(())
    }

    fn hear_reconciled(&self, answer: Value) -> Result<(), Away> {
        // It had been told before.
        if matches!(answer, Value::Int(_)) {
            return Ok(());
        }
        let mut one = Parts::of(Value::Array(vec![answer]))?;
        let told = one.each(|mut account| {
            let (key, _, s, _) = (account.text()?, account.number()?, account.number()?, account.number()?);
            Ok((key, Heard { s, g: account.text()?, v: account.number()?, f: account.number()? }))
        })?;
        told.into_iter().for_each(|(key, heard)| self.node.heard.hear(&key, heard));
        Ok(())
    }
}
