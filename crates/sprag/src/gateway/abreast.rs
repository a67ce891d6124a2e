//! Calls go through the line side by side.
//!
//! A call runs a lot of code, most of it once, and such code is slow: a core does not keep all of it at hand until the next call. So calls that
//! are ready at the same time stand in a row: the first of them takes all along, stage by stage, and what a stage runs is at hand for all but
//! the first. A call that is alone goes by itself. [What that gains](../../../../docs/performance.md#rows).
//!
//! Who stands in a row is not woken for each stage: the one that leads goes on with all of them in one turn of its own task. A call leaves the row
//! when it waits for something from outside, and stands in one again when that has come: whoever brings it puts the call there, so that of several
//! only the first has its connection woken.

use std::any::Any;
use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use http::Response;
use tokio::task::{unconstrained, yield_now};

use super::body::Body;

/// How many one call takes along at the most. More gain little, and everybody else on the thread waits for all of them.
const ABREAST: usize = 32;
/// Turns that a call has before the rest of its thread has one: more than the line has stages, so only what wakes itself over and over needs them all.
const TURNS: usize = 64;

/// The calls that are on their way through the line.
pub struct Line<T = Response<Body>> {
    calls: AtomicUsize,
    /// Those that are ready, by the thread that they are on: threads do not wait for each other.
    rows: Box<[Mutex<Row<T>>]>,
}

/// Calls that are ready to go on. The first one leads.
type Row<T> = VecDeque<Arc<Place<T>>>;

/// One call.
struct Place<T> {
    line: Arc<Line<T>>,
    work: Mutex<Work<T>>,
    /// It can go on: it has made room for others, or what it waits for has come.
    is_ready: AtomicBool,
    /// It stands in a row: who leads will see that it is ready.
    is_in_row: AtomicBool,
    /// The row that it stands in, or stood in last.
    row: AtomicUsize,
    /// Nobody waits for its outcome any more.
    is_gone: AtomicBool,
    /// The task that it belongs to.
    owner: AtomicWaker,
}

enum Work<T> {
    UnderWay(Pin<Box<dyn Future<Output = T> + Send>>),
    Over(T),
    Panicked(Box<dyn Any + Send>),
    /// Its outcome was taken, or its client left.
    Gone,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    GoesOn,
    Waits,
    Over,
}

/// A call on its way; its outcome, when it is over.
pub(crate) struct Along<T: Send + 'static> {
    place: Arc<Place<T>>,
    /// Being the first of its row, it has let others join before it leads them.
    has_let_join: bool,
}

impl<T> Default for Line<T> {
    fn default() -> Line<T> {
        // More than there are threads, so that few share one.
        let rows = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        Line { calls: AtomicUsize::new(0), rows: (0..rows).map(|_| Mutex::default()).collect() }
    }
}

impl<T: Send + 'static> Line<T> {
    /// Takes a call through the line.
    pub(crate) fn take(self: Arc<Self>, call: impl Future<Output = T> + Send + 'static) -> Along<T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let place = Place {
            line: self,
            work: Mutex::new(Work::UnderWay(Box::pin(call))),
            is_ready: AtomicBool::new(true),
            is_in_row: AtomicBool::new(false),
            row: AtomicUsize::new(0),
            is_gone: AtomicBool::new(false),
            owner: AtomicWaker::new(),
        };
        Along { place: Arc::new(place), has_let_join: false }
    }

    /// The end of a stage: others that are ready come as far before the call goes on.
    pub(crate) async fn abreast(&self) {
        if self.is_empty_but_for_one() {
            return;
        }
        let mut has_made_room = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut has_made_room, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Whether there is nobody to make room for.
    fn is_empty_but_for_one(&self) -> bool {
        self.calls.load(Ordering::Relaxed) < 2
    }

    /// The row of this thread.
    fn row_here(&self) -> usize {
        let hash = foldhash::fast::FixedState::default().hash_one(std::thread::current().id());
        usize::try_from(hash % self.rows.len() as u64).unwrap_or_default()
    }

    fn with_row<R>(&self, row: usize, act: impl FnOnce(&mut Row<T>) -> R) -> R {
        act(&mut self.rows[row].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a call is the first of a row.
    fn is_first(&self, row: usize, place: &Arc<Place<T>>) -> bool {
        self.with_row(row, |row| row.front().is_some_and(|first| Arc::ptr_eq(first, place)))
    }

    /// Takes a call out of a row, where it stands there; if it was the first, the next one leads.
    fn take_out(&self, row: usize, place: &Arc<Place<T>>) {
        let next = self.with_row(row, |row| {
            let at = row.iter().position(|other| Arc::ptr_eq(other, place))?;
            row.remove(at);
            row.front().filter(|_| at == 0).cloned()
        });
        if let Some(next) = next {
            next.owner.wake();
        }
    }

    /// Leads the row, if this is its first call.
    fn lead(&self, row: usize, place: &Arc<Place<T>>) {
        let Some((mut abreast, next)) = self.with_row(row, |row| {
            row.front().is_some_and(|first| Arc::ptr_eq(first, place)).then(|| {
                let abreast: Vec<_> = row.drain(..row.len().min(ABREAST)).collect();
                (abreast, row.front().cloned())
            })
        }) else {
            return;
        };
        if let Some(next) = next {
            next.owner.wake();
        }
        let mut turns = 0;
        while !abreast.is_empty() {
            turns += 1;
            abreast.retain(|call| match call.step() {
                Step::GoesOn if turns < TURNS => true,
                Step::GoesOn | Step::Waits => {
                    call.leave();
                    false
                }
                Step::Over => {
                    call.leave();
                    if !Arc::ptr_eq(call, place) {
                        call.owner.wake();
                    }
                    false
                }
            });
        }
    }
}

impl<T: Send + 'static> Place<T> {
    /// Goes on with the call to the end of its stage.
    fn step(self: &Arc<Self>) -> Step {
        // Before it goes on: what comes while it does is news.
        self.is_ready.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(self));
        self.with_work(|work| {
            let Work::UnderWay(call) = work else { return Step::Over };
            // What a call may do in one turn is bounded by its stages, and not by what others in its row have done.
            let turn = || pin!(unconstrained(call.as_mut())).poll(&mut Context::from_waker(&waker));
            let polled = catch_unwind(AssertUnwindSafe(turn));
            *work = match polled {
                Ok(Poll::Pending) if self.is_ready.load(Ordering::SeqCst) => return Step::GoesOn,
                Ok(Poll::Pending) => return Step::Waits,
                Ok(Poll::Ready(outcome)) => Work::Over(outcome),
                Err(panic) => Work::Panicked(panic),
            };
            Step::Over
        })
    }

    /// Stands in the row of this thread, if it stands in none. True if it is the first there.
    fn join(self: &Arc<Self>) -> bool {
        if self.is_in_row.swap(true, Ordering::SeqCst) {
            return false;
        }
        let row = self.line.row_here();
        self.row.store(row, Ordering::SeqCst);
        let is_first = self.line.with_row(row, |row| {
            row.push_back(self.clone());
            row.len() == 1
        });
        // Who went away in between may not have found it here, and it could not lead.
        if self.is_gone.load(Ordering::SeqCst) {
            self.line.take_out(row, self);
        }
        is_first
    }

    /// Leaves the row, and is told of news from now on.
    fn leave(&self) {
        self.is_in_row.store(false, Ordering::SeqCst);
        if self.is_ready.load(Ordering::SeqCst) {
            self.owner.wake();
        }
    }

    /// What came of the call.
    fn outcome(&self) -> Option<T> {
        match self.with_work(|work| match work {
            Work::UnderWay(_) => None,
            _ => Some(std::mem::replace(work, Work::Gone)),
        })? {
            Work::Over(outcome) => Some(outcome),
            Work::Panicked(panic) => resume_unwind(panic),
            Work::UnderWay(_) | Work::Gone => None,
        }
    }

    fn with_work<R>(&self, act: impl FnOnce(&mut Work<T>) -> R) -> R {
        act(&mut self.work.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Send + 'static> Wake for Place<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_ready.store(true, Ordering::SeqCst);
        if self.is_in_row.load(Ordering::SeqCst) {
            return;
        }
        // Where others stand in a row already, the connection of this call need not be woken to have it join them.
        if self.line.is_empty_but_for_one() || self.join() {
            self.owner.wake();
        }
    }
}

impl<T: Send + 'static> Future for Along<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        let place = &this.place;
        let line = &place.line;
        place.owner.register(cx.waker());
        loop {
            if place.is_in_row.load(Ordering::SeqCst) {
                let row = place.row.load(Ordering::SeqCst);
                if !line.is_first(row, place) {
                    return Poll::Pending;
                }
                if !std::mem::replace(&mut this.has_let_join, true) {
                    // Comes back when all that is ready has joined, and the system was asked for more.
                    let _ = pin!(yield_now()).poll(cx);
                    return Poll::Pending;
                }
                line.lead(row, place);
            }
            this.has_let_join = false;
            if let Some(outcome) = place.outcome() {
                return Poll::Ready(outcome);
            }
            if !place.is_ready.load(Ordering::SeqCst) {
                return Poll::Pending;
            }
            if !line.is_empty_but_for_one() {
                place.join();
                continue;
            }
            if place.is_in_row.swap(true, Ordering::SeqCst) {
                continue;
            }
            let goes_on = (0..TURNS).all(|_| place.step() == Step::GoesOn);
            if goes_on {
                place.leave();
                return Poll::Pending;
            }
            place.is_in_row.store(false, Ordering::SeqCst);
        }
    }
}

impl<T: Send + 'static> Drop for Along<T> {
    fn drop(&mut self) {
        let place = &self.place;
        place.line.calls.fetch_sub(1, Ordering::Relaxed);
        place.is_gone.store(true, Ordering::SeqCst);
        if place.is_in_row.load(Ordering::SeqCst) {
            place.line.take_out(place.row.load(Ordering::SeqCst), place);
        }
        // A stage that it is in right now, on another thread, is waited for.
        drop(place.with_work(|work| std::mem::replace(work, Work::Gone)));
    }
}

#[cfg(test)]
mod tests;
