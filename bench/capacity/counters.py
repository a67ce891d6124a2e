"""What the kernel, Redis and ClickHouse have counted so far. Two readings give what a load took."""

import json
import time
import urllib.request
from pathlib import Path

# Of the clocks that Linux keeps of a process, the one that the scheduler counts by.
CPUCLOCK_SCHED = 2
DATABASE = "sprag"
# What the tables of all keys, and of those that go by themselves, take of one key. They grow by doubling, so that a short load would see
# either all of it or nothing.
TABLE_BYTES = 88

# Bytes of all keys by what they are for: the word after the tag.
BYTES_BY_KIND = """
local sums = {}
for _, key in ipairs(redis.call('KEYS', 'sprag:*')) do
  local kind = string.match(key, '}:(%a+)') or 'other'
  local sum = sums[kind] or {0, 0}
  sums[kind] = {sum[1] + 1, sum[2] + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')}
end
return cjson.encode(sums)
"""


def processor_us(pid: int) -> float:
    """Processor time of a process with all its threads, also those that have ended. By its own clock: the ticks of /proc are ten
    milliseconds, which is more than a node at rest takes in seconds."""
    return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED) * 1e6


def resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def of_redis(servers: list) -> dict[str, float]:
    """All servers together."""
    each = [of_one_redis(redis) for redis in servers]
    return {name: sum(one[name] for one in each) for name in each[0]}


def of_one_redis(redis) -> dict[str, float]:
    """`calls` are scripts that nodes called, `commands` what was done inside of them and beside."""
    told = section(redis, "cpu") | section(redis, "stats") | section(redis, "memory")
    statistics = {
        name.removeprefix("cmdstat_"): dict(part.split("=") for part in line.split(","))
        for name, line in section(redis, "commandstats").items()
    }
    calls = {name: int(statistic["calls"]) for name, statistic in statistics.items()}
    scripts = calls.get("evalsha", 0) + calls.get("eval", 0)
    return {
        "redis_us": 1e6 * (float(told["used_cpu_user"]) + float(told["used_cpu_sys"])),
        "redis_calls": scripts,
        "redis_commands": sum(calls.values()) - scripts,
        "redis_in_bytes": int(told["total_net_input_bytes"]),
        "redis_out_bytes": int(told["total_net_output_bytes"]),
        "redis_memory_bytes": int(told["used_memory_dataset"]) + TABLE_BYTES * keys(redis),
    }


def keys(redis) -> int:
    return int(redis.command("DBSIZE"))


def section(redis, name: str) -> dict[str, str]:
    lines = redis.command("INFO", name).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def redis_kinds(redis) -> dict[str, list[int]]:
    """How many keys there are of each kind, and their bytes."""
    return json.loads(redis.run(BYTES_BY_KIND))


def clickhouse_bytes(port: int) -> dict[str, float]:
    """On disk, when everything is merged, as it is a while after it came."""
    for table in ask(port, f"SELECT name FROM system.tables WHERE database = '{DATABASE}' AND engine LIKE '%MergeTree'").split():
        ask(port, f"OPTIMIZE TABLE {DATABASE}.{table} FINAL")
    parts = f"FROM system.parts WHERE active AND database = '{DATABASE}'"
    size, events = ask(port, f"SELECT sum(bytes_on_disk), sumIf(rows, table = 'events') {parts}").split()
    return {"clickhouse_disk_bytes": int(size), "clickhouse_events": int(events)}


def ask(port: int, query: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", query.encode(), timeout=120) as answer:
        return answer.read().decode()


def difference(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}
