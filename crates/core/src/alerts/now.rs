//! A moment by two clocks: people's, which may be set to another time, and one that only goes on.

use crate::time::Timestamp;

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// By people's clock: for what is told, quiet hours and periods of budgets.
    pub wall: Timestamp,
    /// By the steady one: for how long ago something was. Begins at the wall clock's time.
    pub steady: Timestamp,
}

impl From<Timestamp> for Now {
    /// Where both clocks agree.
    fn from(at: Timestamp) -> Now {
        Now { wall: at, steady: at }
    }
}
