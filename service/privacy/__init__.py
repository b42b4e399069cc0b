"""What is charged, and why that is enough: events, prices, both accounts, schedules. Pure; it knows no order and no database."""

import warnings

# log(1 - 1) is -inf where ε is tiny, which is what the formula means there; a line in a log would say nothing more.
warnings.filterwarnings(
    "ignore", "divide by zero encountered in log1p", RuntimeWarning, "dp_accounting.gaussian_mechanism"
)
