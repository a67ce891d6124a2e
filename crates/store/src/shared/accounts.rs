//! More money for a call under way, and accounts as people see them.

use futures_util::future::join_all;
use redis::Value;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{Account, AccountId, Shortfall, Span};
use sprag_core::time::Timestamp;

use super::answers::Told;
use super::packed::{AccountTable, DrawTable, RaiseTable, amount, pack};
use super::reading::Parts;
use super::scripts::{ACCOUNT, RAISE};
use super::{Away, Shared, SharedCall, keys};

impl Shared {
    /// Raises what is set aside for a call to `amount`, on all its accounts in force or on none. In a cluster some of
    /// them may hold more until the call ends.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn raise(&self, call: &SharedCall, to: NanoUsd) -> Result<Result<(), Box<Shortfall>>, Away> {
        let node = &*self.node;
        let in_force = || call.accounts.iter().filter(|drawn| !drawn.draw.id.is_shadow);
        let is_cluster = node.is_cluster();
        let raised = call.places.iter().filter_map(|place| {
            let draws: Vec<DrawTable> = in_force()
                .filter(|drawn| !is_cluster || drawn.place == *place)
                .map(|drawn| DrawTable {
                    l: amount(drawn.draw.limit),
                    ..DrawTable::of(drawn.key.clone(), drawn.draw.span)
                })
                .collect();
            let table = RaiseTable { head: node.head(place, &call.id), amount: amount(to), draws };
            let is_asked = !table.draws.is_empty();
            is_asked.then_some(async move { node.link.call(&RAISE, place, &[pack(&table)]).await })
        });
        for answer in join_all(raised).await {
            let mut parts = Parts::of(answer?)?;
            if parts.number()? == 1 {
                continue;
            }
            let key = parts.text()?;
            let (settled, reserved) = (NanoUsd(parts.number()?), NanoUsd(parts.number()?));
            let span = Span { start: Timestamp(parts.number()?), end: Timestamp(parts.number()?) };
            let tightest = in_force().filter(|drawn| drawn.key == key).min_by_key(|drawn| drawn.draw.limit);
            let Some(drawn) = tightest else { continue };
            let account = Account { settled, reserved, span, last_at: Timestamp::default() };
            return Ok(Err(Box::new(Shortfall { draw: drawn.draw.clone(), account, amount: to, least: to })));
        }
        Ok(Ok(()))
    }

    /// One account, if it is open.
    ///
    /// # Errors
    /// When Redis does not answer in time.
    pub async fn account(&self, id: &AccountId) -> Result<Option<Account>, Away> {
        let node = &*self.node;
        let keys::Place { prefix, key } = keys::account(id);
        let head = node.head(&prefix, "");
        let table = AccountTable { head, k: key.clone(), what: "look", amount: 0, f: 0, e: 0, heard: None };
        match node.link.call(&ACCOUNT, &prefix, &[pack(&table)]).await? {
            Value::Nil => Ok(None),
            value => {
                let told = Told::read(Parts::of(value)?)?;
                node.heard.hear(&key, told.heard());
                Ok(Some(told.account()))
            }
        }
    }
}
