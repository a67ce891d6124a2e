"""The capacity model of docs/scaling.md: its tables are those of the last measurement, and its sums are right."""

import sys

import pytest
from blocks import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from capacity import model, page  # noqa: E402

IDLE = {"node_us": 1000.0, "redis_us": 100.0, "redis_calls": 2.0}


def seen(nodes: int, body_kb: float, requests: int = 1000, seconds: float = 2.0) -> dict:
    """A load as it would be if the model were the truth: 100 µs and 2 µs a KB, 50 µs of Redis, two round trips."""
    of_idle = nodes * seconds / requests
    each = {"node_us": 100 + 2 * body_kb, "redis_us": 50.0, "redis_calls": 2.0, "redis_in_bytes": 1500.0, "redis_out_bytes": 500.0}
    each = {name: value + IDLE.get(name, 0.0) * of_idle for name, value in each.items()}
    each |= {"redis_bytes_of_a_run": 8000.0, "clickhouse_disk_bytes": 125.0, "clickhouse_sent_bytes": 1000.0}
    return each | {"alive": nodes, "requests": requests, "seconds": seconds, "steps": 20, "body_bytes": 1000 * body_kb, "idle": IDLE}


@pytest.fixture
def constants() -> model.Constants:
    return model.constants(seen(1, 10), seen(1, 40))


def test_pages_show_what_was_measured() -> None:
    results = page.read()
    assert page.PAGE.read_text() == page.filled(page.PAGE.read_text(), results), "`bench/cluster --pages` writes them"
    assert (page.RESULTS / "cluster.md").read_text() == page.report(results), "`bench/cluster --pages` writes it"


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for a table"):
        page.filled("# A page", {})


def test_constants_are_found_again(constants: model.Constants) -> None:
    assert (constants.node_us, constants.node_us_of_a_kb) == pytest.approx((100, 2))
    assert constants.each["redis_us"] == pytest.approx(50)
    assert constants.each["redis_calls"] == pytest.approx(2)


def test_longer_bodies_are_never_cheaper() -> None:
    by_chance = seen(1, 40) | {"node_us": 150.0}
    constants = model.constants(seen(1, 10) | {"node_us": 170.0}, by_chance)
    assert (constants.node_us_of_a_kb, constants.node_us) == pytest.approx((0, 148))


def test_a_load_that_follows_the_model_is_predicted(constants: model.Constants) -> None:
    errors = model.errors(constants, seen(3, 70, requests=300, seconds=5))
    assert len(errors) == 8
    assert max(abs(one["error"]) for one in errors.values()) < 1e-9


def test_a_load_that_does_not_is_told(constants: model.Constants) -> None:
    dearer = seen(2, 40) | {"redis_us": 100.0}
    assert model.errors(constants, dearer)["redis_us"]["error"] == pytest.approx(-0.496)


def test_what_goes_along_with_a_run_is_taken_from_two_nodes(constants: model.Constants) -> None:
    two = seen(2, 40) | {"redis_out_bytes": 1200.0}
    several = model.on_several_nodes(constants, two)
    assert (several.each["redis_out_bytes"], several.each["redis_us"]) == pytest.approx((1200, 50))
    assert (several.node_us, several.node_us_of_a_kb) == pytest.approx((100, 2))
    three = seen(3, 70) | {"redis_out_bytes": 1200.0}
    assert max(abs(one["error"]) for one in model.errors(several, three).values()) < 1e-9


def test_what_a_rate_needs(constants: model.Constants) -> None:
    need = model.need(constants, 10_000, body_kb=40, answer_kb=1, bytes_of_a_run_of_one_agent=4000)
    # 1.8 cores at 60 % are one node of four, and one more.
    assert need.nodes == 2
    assert need.node_cores == pytest.approx(1.8 + 2 * 0.001)
    assert need.redis_calls == pytest.approx(20_000 + 2 * 2)
    assert need.redis_servers == 1
    assert need.redis_gib == pytest.approx((500 * 7200 * 4000 / 2**30, 500 * 7200 * 8000 / 2**30))
    # The least stands first, whichever of the two it is.
    larger = model.need(constants, 10_000, body_kb=40, answer_kb=1, bytes_of_a_run_of_one_agent=16000)
    assert larger.redis_gib == pytest.approx((500 * 7200 * 8000 / 2**30, 500 * 7200 * 16000 / 2**30))
    assert need.redis_mbit == pytest.approx(160)
    assert need.agents_mbit == pytest.approx(6560)
    assert need.clickhouse_gb_a_day == pytest.approx(108)
    assert model.most_of_one_redis(constants) == pytest.approx(12_000)


def test_rates_that_were_not_made_are_named() -> None:
    stages = {name: {"requests_per_second": rate} for name, rate in (("one", 12_000), ("two", 9_000), ("three", 11_000))}
    said = page.reached({"stages": stages})
    assert "one node reached 12,000 calls a second, two nodes 9,000, three nodes 11,000" in said
    assert "Not run on several nodes: 100,000 calls a second" in said


def test_without_clickhouse_nothing_is_said_of_it() -> None:
    loads = [{name: value for name, value in seen(1, kb).items() if "clickhouse" not in name} for kb in (10, 40)]
    assert model.need(model.constants(*loads), 1000, 40, 1, 4000).clickhouse_gb_a_day is None
