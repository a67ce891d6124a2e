"""Whether the promises can be broken: books that held are changed in one place, and the promise that is about it must notice.

A check that cannot fail says nothing. These are made from the books of a real trial, so that they are as large and as odd as those.
"""

import copy
import dataclasses
from collections.abc import Callable

import promises
from books import NANO_USD_OF_A_CENT, Account, Books
from call import Call
from load import HURRIED_REQUESTS, HURRIED_SECONDS, SPENDER_LIMIT_CENTS
from provider import Bill
from trial import KILLED_BEFORE


def one(books: Books, phase: str, **wanted) -> Call:
    """A call of a phase with these values."""
    found = (call for call in books.of_phase(phase) if all(getattr(call, name) == value for name, value in wanted.items()))
    return next(found)


def a_broken_connection(books: Books) -> None:
    one(books, "after", agent="worker").error = "ConnectionResetError"


def a_refusal_without_need(books: Books) -> None:
    call = one(books, "after", agent="talker", is_answered=True)
    call.status, call.reason = 503, promises.STATE_LOST


def a_slow_call(books: Books) -> None:
    one(books, "during", is_answered=True, is_held=False).ended += books.fault.slowest_seconds


def a_missing_event(books: Books) -> None:
    gone = one(books, "before", agent="worker", is_answered=True).request_id
    books.events = [[event for event in events if event["id"] != gone] for events in books.events]


def a_lost_event(books: Books) -> None:
    books.recordings[-1]["lost"] = 1


def an_event_twice(books: Books) -> None:
    for events in books.events:
        events.extend(events[:1])


def a_forgotten_cent(books: Books) -> None:
    books.accounts["payer"][-1] = Account(books.billed_cents("payer") - 1, 0)


def a_cent_not_on_record(books: Books) -> None:
    short = books.recorded_cents("payer") - books.billed_cents("payer") + 1
    books.events[0].append({"id": "doctored", "agent": "payer", "cost_nano_usd": -short * NANO_USD_OF_A_CENT})


def a_cent_too_much(books: Books) -> None:
    books.bills.append(Bill("spender-0", "spender", SPENDER_LIMIT_CENTS * books.nodes + 1))


def a_killed_run_that_goes_on(books: Books) -> None:
    call = one(books, "after", run=KILLED_BEFORE)
    call.status, call.reason = 200, None


def a_kill_that_is_not_taken(books: Books) -> None:
    books.times.kills_refused[books.nodes] = "HTTP Error 500"


def a_loop_caught_late(books: Books) -> None:
    task = next(task for task in books.undisturbed("stuck") if task[-1].reason == "loop_detected")
    books.calls.insert(books.calls.index(task[0]), copy.copy(task[0]))


def a_step_counted_twice(books: Books) -> None:
    task = next(task for task in books.undisturbed("worker") if len(task) > 1)
    task[1].step = task[0].step


def a_conversation_in_two_runs(books: Books) -> None:
    task = next(task for task in books.undisturbed("talker") if len(task) > 1)
    task[1].run_id = "another"


def a_crowd(books: Books) -> None:
    call = one(books, "after", agent="hurried", is_answered=True)
    call.ended = min(call.ended, call.began + HURRIED_SECONDS)
    books.calls.extend(dataclasses.replace(call) for _ in range(HURRIED_REQUESTS + 1))


def a_stream_that_never_was(books: Books) -> None:
    books.calls.remove(next(call for call in books.calls if call.is_held))


def a_fault_that_nobody_notices(books: Books) -> None:
    books.times.unwell = {books.nodes} - books.times.unwell


WAYS: list[tuple[Callable, Callable[[Books], None]]] = [
    (promises.clients_see_no_errors, a_broken_connection),
    (promises.refusals_have_their_reason, a_refusal_without_need),
    (promises.calls_are_quick, a_slow_call),
    (promises.all_answers_are_on_record, a_missing_event),
    (promises.records_are_whole, a_lost_event),
    (promises.nothing_is_recorded_twice, an_event_twice),
    (promises.no_money_is_forgotten, a_forgotten_cent),
    (promises.no_money_is_forgotten, a_cent_not_on_record),
    (promises.budgets_hold, a_cent_too_much),
    (promises.kills_hold, a_killed_run_that_goes_on),
    (promises.kills_are_taken, a_kill_that_is_not_taken),
    (promises.loops_are_caught, a_loop_caught_late),
    (promises.runs_hold_together, a_step_counted_twice),
    (promises.runs_hold_together, a_conversation_in_two_runs),
    (promises.rates_hold, a_crowd),
    (promises.health_is_told, a_fault_that_nobody_notices),
    (promises.streams_go_on, a_stream_that_never_was),
]


def unnoticed(books: Books) -> list[str]:
    """Promises that do not notice; and those that nobody has tried to break."""
    found = [f"nothing breaks {promise.__name__}" for promise in promises.ALL if promise not in {tried for tried, _ in WAYS}]
    for promise, doctor in WAYS:
        changed = dataclasses.replace(
            books,
            times=copy.deepcopy(books.times),
            calls=[copy.copy(call) for call in books.calls],
            bills=list(books.bills),
            events=[list(events) for events in books.events],
            accounts=copy.deepcopy(books.accounts),
            recordings=copy.deepcopy(books.recordings),
        )
        doctor(changed)
        if not list(promise(changed)):
            found.append(f"{promise.__name__} does not notice {doctor.__name__}")
    return found
