use std::sync::atomic::AtomicU32;

use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::*;

type Heard = Arc<Mutex<Vec<(u32, u32)>>>;

/// Waits until so many calls are on their way.
async fn begun<T: Send + 'static>(line: &Line<T>, calls: usize) {
    while line.calls.load(Ordering::Relaxed) < calls {
        yield_now().await;
    }
}

/// Calls of some stages each, which begin together.
fn walk(line: &Arc<Line<u32>>, calls: u32, stages: u32, heard: &Heard) -> Vec<JoinHandle<u32>> {
    let start = |call| {
        let (own, heard) = (line.clone(), heard.clone());
        let along = line.clone().take(async move {
            for stage in 0..stages {
                heard.lock().unwrap().push((stage, call));
                own.abreast().await;
            }
            call
        });
        tokio::spawn(along)
    };
    (0..calls).map(start).collect()
}

#[tokio::test]
async fn all_calls_end_a_stage_before_one_begins_the_next() {
    let (line, heard) = (Arc::new(Line::default()), Heard::default());
    for (number, call) in walk(&line, 3, 4, &heard).into_iter().enumerate() {
        assert_eq!(call.await.unwrap() as usize, number);
    }
    let order: Vec<_> = (0..4).flat_map(|stage| (0..3).map(move |call| (stage, call))).collect();
    assert_eq!(*heard.lock().unwrap(), order);
    assert_eq!(line.calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn so_many_go_together_and_others_after_them() {
    let (line, heard) = (Arc::new(Line::default()), Heard::default());
    let most = u32::try_from(ABREAST).unwrap();
    for call in walk(&line, most + 1, 2, &heard) {
        call.await.unwrap();
    }
    let heard = heard.lock().unwrap();
    let first_row: Vec<_> = (0..2).flat_map(|stage| (0..most).map(move |call| (stage, call))).collect();
    assert_eq!(heard[..first_row.len()], first_row);
    assert_eq!(heard[first_row.len()..], [(0, most), (1, most)]);
}

#[test]
fn a_call_that_is_alone_goes_on_at_once() {
    let line = Arc::new(Line::<u32>::default());
    let own = line.clone();
    let mut call = line.clone().take(async move {
        own.abreast().await;
        own.abreast().await;
        7
    });
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(Pin::new(&mut call).poll(&mut context), Poll::Ready(7));
}

#[tokio::test]
async fn a_call_that_waits_is_told_when_what_it_waits_for_has_come() {
    let line = Arc::new(Line::default());
    let (tell, told) = oneshot::channel();
    let waits = tokio::spawn(line.clone().take(async move { told.await.unwrap() }));
    let other = tokio::spawn(line.clone().take(async { 1 }));
    assert_eq!(other.await.unwrap(), 1);
    assert!(!waits.is_finished());
    tell.send(2).unwrap();
    assert_eq!(waits.await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_is_forgotten_on_many_threads() {
    let (line, count) = (Arc::new(Line::default()), Arc::new(AtomicU32::new(0)));
    let call = |_| {
        let (own, count) = (line.clone(), count.clone());
        tokio::spawn(line.clone().take(async move {
            for _ in 0..5 {
                own.abreast().await;
                // News that comes from elsewhere, at any moment.
                tokio::spawn(yield_now()).await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        }))
    };
    let calls: Vec<_> = (0..200).map(call).collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 1000);
}

#[tokio::test]
async fn a_panic_is_that_of_its_own_call() {
    let line = Arc::new(Line::<u32>::default());
    let fails = tokio::spawn(line.clone().take(async { panic!("one call fails") }));
    let passes = tokio::spawn(line.clone().take(async { 1 }));
    assert_eq!(passes.await.unwrap(), 1);
    assert!(fails.await.unwrap_err().is_panic());
}

#[tokio::test]
async fn who_leaves_ends_its_call_and_lets_another_one_lead() {
    let line = Arc::new(Line::<u32>::default());
    let (held, gone) = (Arc::new(()), Arc::new(Notify::new()));
    let (own, told) = (held.clone(), gone.clone());
    let mut leaves = line.clone().take(async move {
        let _own = own;
        told.notified().await;
        0
    });
    // So that it is not alone.
    let mut stays = line.clone().take(async { 1 });
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut leaves).poll(&mut context).is_pending());
    let stays = tokio::spawn(async move {
        let is_first_look = Pin::new(&mut stays).poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert!(is_first_look, "the other one leads");
        stays.await
    });
    begun(&line, 2).await;
    while line.rows.iter().all(|row| row.lock().unwrap().len() < 2) {
        yield_now().await;
    }
    drop(leaves);
    assert_eq!(Arc::strong_count(&held), 1, "its call is over");
    assert_eq!(stays.await.unwrap(), 1);
}

#[tokio::test]
async fn a_call_that_is_never_out_of_work_does_not_run_out_of_turns() {
    let line = Arc::new(Line::<u32>::default());
    let call = |_| {
        tokio::spawn(line.clone().take(async {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            for number in 0..1000 {
                sender.send(number).unwrap();
            }
            let mut sum = 0;
            for _ in 0..1000 {
                sum += receiver.recv().await.unwrap();
            }
            sum
        }))
    };
    for call in (0..3).map(call).collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), 499_500);
    }
}

/// Wakes itself in each of its turns, until it is told to stop by somebody who needs a turn for that.
async fn restless(is_told: Arc<AtomicBool>) {
    std::future::poll_fn(|cx| {
        if is_told.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[tokio::test]
async fn what_wakes_itself_over_and_over_leaves_others_their_turn() {
    for calls in [1, 2] {
        let (line, is_told) = (Arc::new(Line::<()>::default()), Arc::new(AtomicBool::new(false)));
        let begin = |_| tokio::spawn(line.clone().take(restless(is_told.clone())));
        let calls: Vec<_> = (0..calls).map(begin).collect();
        let tells = is_told.clone();
        tokio::spawn(async move { tells.store(true, Ordering::Relaxed) });
        for call in calls {
            call.await.unwrap();
        }
    }
}

/// Counts how often a connection is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Two calls that wait for news, each with its connection.
fn waiting(line: &Arc<Line<u32>>) -> [(Along<u32>, oneshot::Sender<u32>, Arc<Woken>); 2] {
    let mut calls = [(); 2].map(|()| {
        let (tell, told) = oneshot::channel();
        (line.clone().take(async { told.await.unwrap() }), tell, Arc::<Woken>::default())
    });
    for at in [0, 1, 0] {
        assert!(look(&mut calls[at]).is_pending());
    }
    calls.iter().for_each(|(_, _, woken)| woken.0.store(0, Ordering::Relaxed));
    assert!(line.rows.iter().all(|row| row.lock().unwrap().is_empty()), "they wait outside");
    calls
}

fn look((call, _, woken): &mut (Along<u32>, oneshot::Sender<u32>, Arc<Woken>)) -> Poll<u32> {
    Pin::new(call).poll(&mut Context::from_waker(&Waker::from(woken.clone())))
}

#[tokio::test]
async fn of_those_that_hear_news_only_the_first_has_its_connection_woken() {
    let line = Arc::new(Line::<u32>::default());
    let mut calls = waiting(&line);
    for (at, call) in calls.iter_mut().enumerate() {
        let (tell, _) = oneshot::channel();
        std::mem::replace(&mut call.1, tell).send(u32::try_from(at).unwrap()).unwrap();
    }
    let woken =
        |calls: &[(Along<u32>, _, Arc<Woken>); 2]| calls.each_ref().map(|call| call.2.0.load(Ordering::Relaxed));
    assert_eq!(woken(&calls), [1, 0]);
    assert!(look(&mut calls[0]).is_pending(), "others may join first");
    assert_eq!(look(&mut calls[0]), Poll::Ready(0));
    assert_eq!(woken(&calls)[1], 1, "its outcome is there");
    assert_eq!(look(&mut calls[1]), Poll::Ready(1));
}

#[tokio::test]
async fn who_leaves_while_it_stands_in_a_row_lets_the_next_one_lead() {
    let line = Arc::new(Line::<u32>::default());
    let [(leaves, tell, _), mut stays] = waiting(&line);
    tell.send(0).unwrap();
    let (tell, _) = oneshot::channel();
    std::mem::replace(&mut stays.1, tell).send(1).unwrap();
    assert_eq!(stays.2.0.load(Ordering::Relaxed), 0);
    drop(leaves);
    assert_eq!(stays.2.0.load(Ordering::Relaxed), 1);
    let (_other, mut looks) = (line.clone().take(async { 2 }), 0);
    while look(&mut stays).is_pending() {
        looks += 1;
        assert_eq!(looks, 1);
    }
}

#[tokio::test]
async fn news_for_one_that_has_left_puts_nobody_into_a_row() {
    let line = Arc::new(Line::<u32>::default());
    let (kept, others) = (Arc::new(Mutex::new(None)), [(); 2].map(|()| line.clone().take(async { 1 })));
    let keeps = kept.clone();
    let mut leaves = line.clone().take(std::future::poll_fn(move |cx| {
        *keeps.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }));
    for _ in 0..2 {
        assert!(Pin::new(&mut leaves).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(leaves);
    kept.lock().unwrap().take().unwrap().wake();
    assert!(line.rows.iter().all(|row| row.lock().unwrap().is_empty()));
    drop(others);
}
