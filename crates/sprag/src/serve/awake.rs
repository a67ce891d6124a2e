//! Stays awake for a moment where news has come soon the last times.
//!
//! A thread that sleeps takes longer to wake up than a near server takes to answer, and has less of its code at hand when it does. So a
//! connection that has nothing to do looks around for a moment before its thread may sleep, as kernels do before they halt a processor. It
//! does so only where that would have helped the last times: a model that takes milliseconds for a word is never waited for like this, and
//! where others have work, that goes first. [What that gains](../../../../docs/performance.md#staying-awake).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use tokio::task::yield_now;

/// How long is looked around at the most. Answers of what is near mostly come within a third of it.
const MOMENT: Duration = Duration::from_micros(100);
/// What is shorter was no wait: the connection told itself to go on.
const NO_WAIT: Duration = Duration::from_micros(2);
/// From so much trust on that news comes within that.
const TRUST: u8 = 4;
/// No more of it is kept, so that a change is noticed soon.
const MOST_TRUST: u8 = 6;
/// Waits of which nobody takes the time, after a long one where there is no trust to lose: two looks at the clock for each wait are more than
/// they would teach.
const UNTIMED: u8 = 7;

/// What a connection waits for, as far as that can be told from outside. Each takes its own time.
#[derive(Debug, Default)]
pub(super) struct Stage(AtomicU8);

/// Of [`Stage`].
const REQUEST: u8 = 0;
const ANSWER: u8 = 1;
const MORE: u8 = 2;
const STAGES: usize = 3;

/// The body of an answer: when it is over, the next request is waited for.
#[derive(Debug)]
pub(super) struct UntilOver<B> {
    body: B,
    stage: Arc<Stage>,
}

/// What a connection knows of its waits.
#[derive(Debug, Default)]
struct Waits {
    /// For each stage: grows with each wait that was short, shrinks with each that was not.
    trust: [u8; STAGES],
    /// For each stage: so many waits to come teach nothing.
    untimed: [u8; STAGES],
    /// The wait that is under way.
    stage: usize,
    since: Option<Instant>,
    is_looking: bool,
}

/// Whether something has happened since the last look.
#[derive(Debug, Default)]
struct News {
    has_come: AtomicBool,
    task: AtomicWaker,
}

/// Goes on with something until it is ready, and stays awake meanwhile where that helps.
pub(super) async fn stay_awake<T>(stage: &Stage, mut go_on: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let (mut waits, news) = (Waits::default(), Arc::new(News::default()));
    let waker = Waker::from(news.clone());
    poll_fn(|cx| {
        news.task.register(cx.waker());
        let has_news = news.has_come.swap(false, Ordering::AcqRel);
        if waits.is_looking && !has_news {
            waits.go_on(Instant::now());
        } else {
            if waits.since.is_some() {
                waits.end(Instant::now());
            }
            if let Poll::Ready(done) = go_on(&mut Context::from_waker(&waker)) {
                return Poll::Ready(done);
            }
            let stage = stage.0.load(Ordering::Relaxed);
            if waits.is_timed(stage) {
                waits.begin(stage, Instant::now());
            }
        }
        if waits.is_looking {
            // Whatever else has work on this core does it now, and not in the middle of a call.
            std::thread::yield_now();
            // Comes back when all that is ready was done, and the system was asked for more.
            let _ = pin!(yield_now()).poll(cx);
        }
        Poll::Pending
    })
    .await
}

impl Stage {
    /// A request has come.
    pub(super) fn asked(&self) {
        self.0.store(ANSWER, Ordering::Relaxed);
    }

    /// The head of its answer is there; its body tells when it is over.
    pub(super) fn answers<B>(self: Arc<Self>, body: B) -> UntilOver<B> {
        self.0.store(MORE, Ordering::Relaxed);
        UntilOver { body, stage: self }
    }
}

impl Waits {
    /// Whether the wait that begins teaches something. One that does not has no look around either.
    fn is_timed(&mut self, stage: u8) -> bool {
        let untimed = &mut self.untimed[usize::from(stage).min(STAGES - 1)];
        if *untimed == 0 {
            return true;
        }
        *untimed -= 1;
        (self.since, self.is_looking) = (None, false);
        false
    }

    fn begin(&mut self, stage: u8, now: Instant) {
        self.stage = usize::from(stage).min(STAGES - 1);
        self.since = Some(now);
        self.is_looking = self.trust[self.stage] >= TRUST;
    }

    /// Nothing has come yet.
    fn go_on(&mut self, now: Instant) {
        self.is_looking = self.since.is_some_and(|since| now - since < MOMENT);
    }

    /// There is news.
    fn end(&mut self, now: Instant) {
        let Some(waited) = self.since.map(|since| now - since).filter(|waited| *waited >= NO_WAIT) else { return };
        let trust = &mut self.trust[self.stage];
        if waited < MOMENT {
            *trust = (*trust + 1).min(MOST_TRUST);
            return;
        }
        *trust = trust.saturating_sub(1);
        if *trust == 0 {
            self.untimed[self.stage] = UNTIMED;
        }
    }
}

impl Wake for News {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_come.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<B: Body + Unpin> Body for UntilOver<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for UntilOver<B> {
    fn drop(&mut self) {
        self.stage.0.store(REQUEST, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use http_body_util::{BodyExt, Full};

    use super::*;

    const SHORT: Duration = Duration::from_micros(20);
    const LONG: Duration = Duration::from_millis(2);

    /// Waits at a stage for so long; gives whether it looked around.
    fn wait(waits: &mut Waits, stage: u8, long: Duration) -> bool {
        let now = Instant::now();
        waits.begin(stage, now);
        let has_looked = waits.is_looking;
        waits.end(now + long);
        has_looked
    }

    #[test]
    fn short_waits_are_trusted_and_long_ones_are_not() {
        let mut waits = Waits::default();
        let looked: Vec<bool> = (0..6).map(|_| wait(&mut waits, ANSWER, SHORT)).collect();
        assert_eq!(looked, [false, false, false, false, true, true]);
        let looked: Vec<bool> = (0..4).map(|_| wait(&mut waits, ANSWER, LONG)).collect();
        assert_eq!(looked, [true, true, true, false], "a change is noticed soon");
        assert!((0..100).all(|_| !wait(&mut waits, MORE, LONG)), "a model is never waited for like this");
    }

    #[test]
    fn where_waits_are_long_few_are_timed_and_a_change_is_noticed_all_the_same() {
        let mut waits = Waits::default();
        let mut timed_wait = |long| {
            let is_timed = waits.is_timed(ANSWER);
            let has_looked = is_timed && wait(&mut waits, ANSWER, long);
            (is_timed, has_looked)
        };
        let timed: Vec<usize> = (0..20).filter(|_| timed_wait(LONG).0).collect();
        assert_eq!(timed, [0, 8, 16]);
        let looked = (0..20).position(|_| timed_wait(SHORT).1);
        assert_eq!(looked, Some(4 + usize::from(TRUST)), "what is left untimed, and what trust takes");
        assert!((0..20).all(|_| timed_wait(SHORT).0));
    }

    #[test]
    fn stages_know_nothing_of_each_other() {
        let mut waits = Waits::default();
        for _ in 0..10 {
            wait(&mut waits, REQUEST, SHORT);
            wait(&mut waits, MORE, LONG);
        }
        assert!(wait(&mut waits, REQUEST, SHORT));
        assert!(!wait(&mut waits, MORE, SHORT));
        assert!(!wait(&mut waits, ANSWER, SHORT));
    }

    #[test]
    fn what_was_no_wait_teaches_nothing() {
        let mut waits = Waits::default();
        for _ in 0..10 {
            assert!(!wait(&mut waits, ANSWER, Duration::from_nanos(500)));
        }
        for _ in 0..10 {
            wait(&mut waits, ANSWER, SHORT);
        }
        for _ in 0..3 {
            wait(&mut waits, ANSWER, LONG);
            wait(&mut waits, ANSWER, Duration::from_nanos(500));
        }
        assert!(!wait(&mut waits, ANSWER, LONG));
    }

    #[test]
    fn the_look_around_has_an_end() {
        let mut waits = Waits { trust: [MOST_TRUST; STAGES], ..Waits::default() };
        let now = Instant::now();
        waits.begin(REQUEST, now);
        waits.go_on(now + MOMENT - Duration::from_nanos(1));
        assert!(waits.is_looking);
        waits.go_on(now + MOMENT);
        assert!(!waits.is_looking);
    }

    #[tokio::test]
    async fn a_stage_ends_with_the_body_of_its_answer() {
        let stage = Arc::new(Stage::default());
        let at = || stage.0.load(Ordering::Relaxed);
        stage.asked();
        assert_eq!(at(), ANSWER);
        let body = stage.clone().answers(Full::new(bytes::Bytes::from_static(b"whole")));
        assert_eq!((at(), body.size_hint().exact()), (MORE, Some(5)));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "whole");
        assert_eq!(at(), REQUEST);
    }

    /// Something else answers at once, time after time: after some of that it is looked for, and nothing is missed.
    #[tokio::test]
    async fn no_news_is_missed_while_it_is_looked_for_and_nothing_is_asked_in_vain() {
        const TIMES: usize = 2000;
        let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel::<()>();
        let (answer, mut answered) = tokio::sync::mpsc::unbounded_channel::<()>();
        tokio::spawn(async move {
            while asked.recv().await.is_some() {
                // Longer than no wait at all.
                let since = Instant::now();
                while since.elapsed() < SHORT {
                    yield_now().await;
                }
                let _ = answer.send(());
            }
        });
        let (mut answers, looks) = (0, AtomicUsize::new(0));
        ask.send(()).unwrap();
        let stage = Stage::default();
        let done = stay_awake(&stage, |cx| {
            looks.fetch_add(1, Ordering::Relaxed);
            while let Poll::Ready(Some(())) = answered.poll_recv(cx) {
                answers += 1;
                if answers == TIMES {
                    return Poll::Ready(());
                }
                ask.send(()).unwrap();
            }
            Poll::Pending
        });
        tokio::time::timeout(Duration::from_secs(60), done).await.unwrap();
        let looks = looks.into_inner();
        assert!(looks <= TIMES + 1, "it went on {looks} times for {TIMES} answers");
    }
}
