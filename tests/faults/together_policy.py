"""What agents may do whose calls go over several nodes."""

from load import PRICES

BUDGET_CENTS = 100

WINDOW_REQUESTS = 50
WINDOW_SECONDS = 2
BUCKET_RPS = 40
BUCKET_BURST = 40

POLICY = f"""{PRICES}[agents.expected.budget]
monthly_limit = "{BUDGET_CENTS / 100:.2f}"
reserve = "expected"
[agents.exact.budget]
monthly_limit = "{BUDGET_CENTS / 100:.2f}"
reserve = "worst_case"
[agents.cautious.budget]
monthly_limit = "{BUDGET_CENTS / 100:.2f}"
reserve = "worst_case"
[[agents.window.rate_limits]]
name = "window"
limit_keys = ["agent"]
requests = {WINDOW_REQUESTS}
window_seconds = {WINDOW_SECONDS}
[[agents.bucket.rate_limits]]
name = "bucket"
limit_keys = ["agent"]
rps = {BUCKET_RPS}
burst = {BUCKET_BURST}
[agents.again.detection.repeat]
mode = "enforce"
"""
