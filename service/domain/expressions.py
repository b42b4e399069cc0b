"""What a declaration writes of columns: `start <= end`, `net + tax = gross`. Read by Python's grammar; nothing is evaluated.

Only what is listed here is an expression. Types and sizes follow from the declared columns alone, so that a relation that
could not be computed exactly is refused before any row is read.
"""

from __future__ import annotations

import ast
import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from service.base.messages import Message
from service.domain.arithmetic import Tree, columns_of, size_of, value_of
from service.domain.bounds import a_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Kind = Literal["number", "date", "datetime"]

MOST_CHARACTERS = 2_000
_MOST = 2**62
"""Whole numbers below it are exact in 64 bits."""
_MOST_POWER = 4
_MOST_PARTS = 200
_DEEPEST = 50
_MOST_OPERATIONS = 3_000
"""Written out: what is used twice counts twice, because a library that reads a table computes it twice."""
_BINARY: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARED: dict[type, str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.NotEq: "!=", ast.Eq: "="}
_FUNCTIONS = {"abs": 1, "min": 2, "max": 2, "year": 1, "month": 1}
_ALLOWED = Message("columns, numbers, + - * /, ** with a small whole number, abs, min, max, year and month")


_ONLY = Message("an expression has only %(allowed)s", allowed=_ALLOWED)


@dataclass(frozen=True)
class Operand:
    """A column as an expression may use it."""

    kind: Kind
    low: Fraction
    high: Fraction
    digits: int | None
    """After the point; None where the declaration leaves that open."""
    zone: dt.tzinfo = dt.UTC
    """Of times that are written beside it without one."""


@dataclass(frozen=True)
class Span:
    """What an expression may come to, and how large its whole numbers get on the way."""

    kind: Kind
    low: Fraction
    high: Fraction
    numerator: int
    denominator: int
    is_fixed: bool = True
    """The denominator is the same in every row."""
    is_exact: bool = True
    """All columns have a declared number of digits."""


@dataclass(frozen=True)
class Statement:
    """One comparison: an inequality, or an equality."""

    operator: str
    left: Tree
    right: Tree


class Reader:
    """Reads expressions on these columns."""

    def __init__(self, operands: Mapping[str, Operand | None]) -> None:
        self._operands = operands
        """None: a column of the table that cannot be computed with."""
        self._quoted: dict[str, str] = {}

    def statements(self, text: str) -> list[Statement]:
        """`a <= b`, `a <= b <= c`, `a + b = c`; raises ValueError with a sentence."""
        node = self._parsed(text)
        if not isinstance(node, ast.Compare):
            raise ValueError(  # noqa: TRY004 - pydantic wants ValueError
                Message(
                    "%(text)s is not a relation: write two sides with <=, <, >=, >, != or = between them",
                    text=repr(text),
                )
            )
        if _depth(node) > _DEEPEST:
            raise ValueError(Message("the expression is nested too deeply"))
        sides = [self._tree(side) for side in (node.left, *node.comparators)]
        if sum(map(_operations, sides)) > _MOST_OPERATIONS:
            raise ValueError(
                Message(
                    "%(text)s takes too many operations: nest fewer min, max, year and month; each uses what is in it "
                    "several times",
                    text=repr(text),
                )
            )
        found = []
        for operator, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            if type(operator) not in _COMPARED:
                raise ValueError(Message("%(text)s: a relation compares with <=, <, >=, >, != or =", text=repr(text)))
            found.append(Statement(_COMPARED[type(operator)], left, right))
        if len(found) > 1 and any(one.operator == "=" for one in found):
            raise ValueError(Message("%(text)s: write an equation as a relation of its own", text=repr(text)))
        return found

    def resolved(self, tree: Tree) -> Tree:
        """The expression with the digits of its columns, once all are known, and with texts beside a date or time read as such."""
        head, *rest = tree
        if head == "column":
            return ["column", rest[0], self._operand(rest[0]).digits]
        if head in {"number", "text"}:
            return tree
        return [head, *self._alike([self.resolved(part) for part in rest])]

    def span(self, tree: Tree) -> Span:
        """Raises ValueError where an expression makes no sense, or could not be computed exactly."""
        head, *rest = tree
        if head == "column":
            return self._span_of_column(rest[0])
        if head in {"number", "moment"}:
            value = Fraction(rest[0], rest[1])
            return Span("number" if head == "number" else rest[2], value, value, abs(rest[0]), rest[1])
        if head == "text":
            raise ValueError(Message("%(rest)s is a text, where a number or a column is expected", rest=repr(rest[0])))
        span = _combined(head, [self.span(part) for part in rest])
        _check_size(span)
        return span

    def compared(self, statement: Statement) -> Tree:
        """The inequality, resolved; raises ValueError where its sides cannot be compared."""
        sides = self._alike([self.resolved(statement.left), self.resolved(statement.right)])
        left, right = map(self.span, sides)
        if left.kind != right.kind:
            raise ValueError(
                Message("%(one)s cannot be compared with %(other)s", one=a_kind(left.kind), other=a_kind(right.kind))
            )
        _check_size(_combined("-", [left, right]))
        return [statement.operator, *sides]

    def _operand(self, name: str) -> Operand:
        operand = self._operands[name]
        if operand is None:
            raise ValueError(
                Message("%(name)s is not a number, date or time, so it cannot be computed with", name=repr(name))
            )
        return operand

    def _span_of_column(self, name: str) -> Span:
        operand = self._operand(name)
        scale = 1 if operand.digits is None else 10**operand.digits
        most = math.ceil(max(abs(operand.low), abs(operand.high)) * scale)
        return Span(operand.kind, operand.low, operand.high, most, scale, is_exact=operand.digits is not None)

    def _parsed(self, text: str) -> ast.expr:
        if len(text) > MOST_CHARACTERS:
            raise ValueError(
                Message("an expression has at most %(most_characters)s characters", most_characters=MOST_CHARACTERS)
            )
        self._quoted = {}

        def named(found: re.Match[str]) -> str:
            return f" {self._placeholder(found[1])} "

        plain = re.sub(r"`([^`]+)`", named, text)
        plain = re.sub(r"(?<![<>=!])=(?!=)", "==", plain)
        try:
            return ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError(
                Message(
                    "%(text)s cannot be read; an expression has %(allowed)s; write a column whose name is not a plain "
                    "word in backticks",
                    text=repr(text),
                    allowed=_ALLOWED,
                )
            ) from None

    def _placeholder(self, name: str) -> str:
        word = f"quoted_{len(self._quoted)}_"
        while word in self._operands:
            word += "_"
        self._quoted[word] = name
        return word

    def _tree(self, node: ast.expr) -> Tree:
        if isinstance(node, ast.Name):
            return self._column(self._quoted.get(node.id, node.id))
        if isinstance(node, ast.Constant):
            return _constant(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self._tree(node.operand)
            return ["negative", inner] if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._call(node.func.id, node.args)
        raise ValueError(_ONLY)

    def _column(self, name: str) -> Tree:
        if name not in self._operands:
            raise ValueError(Message("there is no field %(name)s", name=repr(name)))
        return ["column", name, None]

    def _binary(self, node: ast.BinOp) -> Tree:
        left = self._tree(node.left)
        if isinstance(node.op, ast.Pow):
            power = node.right.value if isinstance(node.right, ast.Constant) else None
            if type(power) is not int or not 1 <= power <= _MOST_POWER:
                raise ValueError(Message("** takes a whole number from 1 to %(most_power)s", most_power=_MOST_POWER))
            if size_of(left) * power > _MOST_PARTS:
                raise ValueError(
                    Message("a power is of an expression of at most %(most_parts)s parts", most_parts=_MOST_PARTS)
                )
            tree = left
            for _ in range(power - 1):
                tree = ["*", tree, left]
            return tree
        if type(node.op) not in _BINARY:
            raise ValueError(_ONLY)
        return [_BINARY[type(node.op)], left, self._tree(node.right)]

    def _call(self, name: str, arguments: list[ast.expr]) -> Tree:
        if _FUNCTIONS.get(name) == len(arguments):
            return [name, *(self._tree(argument) for argument in arguments)]
        raise ValueError(_ONLY)

    def _alike(self, parts: list[Tree]) -> list[Tree]:
        """A date or time that is written as text takes the kind of what stands beside it."""
        others = [part for part in parts if part[0] != "text"]
        if len(others) == len(parts) or not others:
            return parts
        kind = self.span(others[0]).kind
        zone = next((self._operand(n).zone for n in columns_of(others[0]) if self._operand(n).kind == kind), dt.UTC)
        return [_moment(part[1], kind, zone) if part[0] == "text" else part for part in parts]


def digits_of(span: Span) -> int | None:
    """How many digits after the point always suffice; None where no number of them does."""
    if not (span.is_fixed and span.is_exact):
        return None
    digits, unit = 0, 1
    while unit % span.denominator:
        digits, unit = digits + 1, unit * 10
        if digits > len("123456789"):
            return None
    return digits


def _depth(node: ast.AST) -> int:
    """How many operations lie in one another; long chains of sums do, too. Without recursion."""
    deepest, waiting = 0, [(node, 1)]
    while waiting:
        one, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(child, depth + 1) for child in ast.iter_child_nodes(one)]
    return deepest


class _Counted:
    """In the place of values: how many operations, columns and numbers it takes to compute them."""

    def __init__(self, count: int = 1) -> None:
        self.count = count

    def _with(self, other: object = None) -> _Counted:
        return _Counted(self.count + 1 + (other.count if isinstance(other, _Counted) else 1))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _with
    __abs__ = _with


def _operations(tree: Tree) -> int:
    """By the arithmetic itself."""
    parts = value_of(_of_columns(tree), lambda _name, _digits: _Counted())
    return sum(part.count for part in parts if isinstance(part, _Counted))


def _of_columns(tree: Tree) -> Tree:
    """Texts are dates or times, which are known only beside other columns."""
    if tree[0] == "text":
        return ["number", 0, 1]
    return [_of_columns(part) if isinstance(part, list) else part for part in tree]


def _constant(value: object) -> Tree:
    if isinstance(value, str):
        return ["text", value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(_ONLY)  # noqa: TRY004 - pydantic wants ValueError
    if not abs(value) < _MOST:  # before anything else: whole numbers may be too large for a float, or to be printed
        raise ValueError(Message("a number in an expression is below 2**62 = 4611686018427387904"))
    exact = Fraction(Decimal(str(value)))
    return ["number", exact.numerator, exact.denominator]


def _moment(text: str, kind: Kind, zone: dt.tzinfo) -> Tree:
    try:
        if kind == "date":
            return ["moment", (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days, 1, kind]
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            Message("%(text)s is not a date or time as in 2024-02-29 or 2024-02-29T12:00:00", text=repr(text))
        ) from None
    if kind == "number":
        raise ValueError(Message("%(text)s is a text, where a number is expected", text=repr(text)))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    return ["moment", math.floor(moment.timestamp()), 1, kind]


def _check_size(span: Span) -> None:
    if max(span.numerator, span.denominator) >= _MOST:
        raise ValueError(
            Message("its values may become too large to be computed exactly: declare fewer decimals or a smaller range")
        )


def _of_one(head: str, a: Span) -> Span:
    if head in {"year", "month"}:
        return _calendar(head, a)
    if a.kind != "number":
        raise ValueError(Message("a minus sign and abs need a number, not %(kind)s", kind=a_kind(a.kind)))
    ends = (-a.high, -a.low) if head == "negative" else _absolute(a)
    return Span("number", *ends, a.numerator, a.denominator, a.is_fixed, a.is_exact)


def _combined(head: str, parts: list[Span]) -> Span:
    if head in {"year", "month", "negative", "abs"}:
        return _of_one(head, parts[0])
    a, b = parts
    is_fixed, is_exact = a.is_fixed and b.is_fixed, a.is_exact and b.is_exact
    kind = _kind(head, a, b)
    if head in {"+", "-", "min", "max"}:
        common = math.lcm(a.denominator, b.denominator) if is_fixed else a.denominator * b.denominator
        most = a.numerator * (common // a.denominator) + b.numerator * (common // b.denominator)
        ends = {
            "+": (a.low + b.low, a.high + b.high),
            "-": (a.low - b.high, a.high - b.low),
            "min": (min(a.low, b.low), min(a.high, b.high)),
            "max": (max(a.low, b.low), max(a.high, b.high)),
        }[head]
        twice = 2 if head in {"min", "max"} else 1
        return Span(kind, *ends, twice * most, twice * common, is_fixed, is_exact)
    if head == "/" and b.low <= 0:
        raise ValueError(Message("what an expression divides by must be above 0: declare such a minimum for it"))
    combined: Callable[[Fraction, Fraction], Fraction] = Fraction.__mul__ if head == "*" else Fraction.__truediv__
    corners = [combined(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if head == "*":
        sizes = a.numerator * b.numerator, a.denominator * b.denominator
    else:
        is_fixed = is_fixed and b.low == b.high
        sizes = a.numerator * b.denominator, a.denominator * b.numerator
    return Span(kind, min(corners), max(corners), *sizes, is_fixed, is_exact)


def _kind(head: str, a: Span, b: Span) -> Kind:
    """Moments may be moved by numbers (days, of a time seconds), and subtracted from each other."""
    kinds = (a.kind, b.kind)
    if kinds == ("number", "number"):
        return "number"
    if head in {"min", "max"} and a.kind == b.kind:
        return a.kind
    if head == "-" and a.kind == b.kind:
        return "number"
    if head in {"+", "-"} and b.kind == "number":
        return a.kind
    if head == "+" and a.kind == "number":
        return b.kind
    raise ValueError(
        Message("%(head)s of %(one)s and %(other)s has no meaning", head=head, one=a_kind(a.kind), other=a_kind(b.kind))
    )


def _absolute(a: Span) -> tuple[Fraction, Fraction]:
    high = max(abs(a.low), abs(a.high))
    return (Fraction(0) if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))), high


def _calendar(head: str, a: Span) -> Span:
    if a.kind != "date":
        raise ValueError(Message("%(head)s is of a date", head=head))
    ends = []
    for day in (a.low, a.high):
        numerator, _ = value_of([head, ["number", math.floor(day), 1]], lambda _name, _digits: 0)
        ends.append(Fraction(numerator))
    low, high = ends if head == "year" else (Fraction(1), Fraction(12))
    return Span("number", low, high, 1_000_000, 1)
