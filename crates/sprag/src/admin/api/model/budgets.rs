//! Limits on money, and where they stand.

use serde::{Deserialize, Serialize};
use sprag_core::loops::Mode;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Holder, Level, Reserve};
use utoipa::ToSchema;

use super::Usd;
use super::policy::StageRecord;
use crate::acts::{Adjusted, Adjustment};
use crate::budgets::BudgetRow;

/// An account, its limit, and where it stands. What concerns a limit is null where there is none.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AccountRecord {
    /// Such as `agent:bot daily`: what `adjust` takes.
    pub(crate) account: String,
    /// Who set the limit.
    pub(crate) level: Level,
    /// The name of the agent, the id of the key, `AGENT/RUN`, or `everything`.
    pub(crate) holder: String,
    /// `daily`, `monthly` or `run`.
    pub(crate) window: String,
    pub(crate) mode: Option<Mode>,
    pub(crate) limit_usd: Option<Usd>,
    pub(crate) limit_nano_usd: Option<NanoUsd>,
    /// What calls cost that are over, corrections included.
    pub(crate) settled_usd: Usd,
    pub(crate) settled_nano_usd: NanoUsd,
    /// What is set aside for calls under way.
    pub(crate) reserved_usd: Usd,
    pub(crate) reserved_nano_usd: NanoUsd,
    /// What is left for the next call.
    pub(crate) remaining_usd: Option<Usd>,
    pub(crate) remaining_nano_usd: Option<NanoUsd>,
    /// What is settled, of the limit; rounded down to a tenth.
    pub(crate) used_percent: Option<f64>,
    /// What was added by hand, and is a part of what is settled.
    pub(crate) adjusted_usd: Usd,
    pub(crate) adjusted_nano_usd: NanoUsd,
    /// Null for a run.
    pub(crate) starts_at: Option<String>,
    pub(crate) ends_at: Option<String>,
    pub(crate) reserve: Option<Reserve>,
    pub(crate) stages: Vec<StageRecord>,
    /// What was done to it. Said in the answer to that, and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) adjustment: Option<AdjustmentRecord>,
}

/// A correction of what an account has spent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AdjustmentRecord {
    pub(crate) asked_usd: Usd,
    pub(crate) applied_usd: Usd,
    pub(crate) before_usd: Usd,
    /// Why it is not what was asked for, or what is odd about it.
    pub(crate) note: Option<String>,
}

impl From<&BudgetRow> for AccountRecord {
    fn from(row: &BudgetRow) -> AccountRecord {
        let limit = row.limit.as_ref();
        let remaining = row.remaining();
        AccountRecord {
            account: AccountId { is_shadow: false, ..row.id.clone() }.to_string(),
            level: row.level(),
            holder: match &row.id.holder {
                Holder::Run(agent, run) => format!("{agent}/{run}"),
                Holder::Key(key) => key.to_string(),
                Holder::Agent(agent) => agent.to_string(),
                Holder::Everything => row.id.holder.to_string(),
            },
            window: row.id.window.as_str().to_owned(),
            mode: limit.map(|limit| limit.mode),
            limit_usd: limit.map(|limit| Usd(limit.amount)),
            limit_nano_usd: limit.map(|limit| limit.amount),
            settled_usd: Usd(row.settled),
            settled_nano_usd: row.settled,
            reserved_usd: Usd(row.reserved),
            reserved_nano_usd: row.reserved,
            remaining_usd: remaining.map(Usd),
            remaining_nano_usd: remaining,
            used_percent: row.thousandths(row.settled).map(|thousandths| thousandths as f64 / 10.0),
            adjusted_usd: Usd(row.adjusted),
            adjusted_nano_usd: row.adjusted,
            starts_at: row.span.map(|span| span.start.to_rfc3339()),
            ends_at: row.span.map(|span| span.end.to_rfc3339()),
            reserve: limit.map(|limit| limit.reserve),
            stages: limit.iter().flat_map(|limit| limit.stages.iter()).map(StageRecord::new).collect(),
            adjustment: None,
        }
    }
}

impl AccountRecord {
    /// The account after a correction.
    pub(in crate::admin::api) fn adjusted(adjusted: &Adjusted, order: &Adjustment) -> AccountRecord {
        let Adjusted { row, before, applied } = adjusted;
        let note = if *applied == NanoUsd::ZERO {
            Some("nothing was spent, so there was nothing to take away".to_owned())
        } else if *applied != order.amount {
            Some(format!("only ${before} was spent: that was taken away, and no more"))
        } else {
            row.limit.is_none().then(|| "nothing limits this account".to_owned())
        };
        let adjustment = AdjustmentRecord {
            asked_usd: Usd(order.amount),
            applied_usd: Usd(*applied),
            before_usd: Usd(*before),
            note,
        };
        AccountRecord { adjustment: Some(adjustment), ..AccountRecord::from(row) }
    }
}
