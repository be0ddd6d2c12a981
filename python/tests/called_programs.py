"""A program that calls functions in every way there is; prints what a profiler counted, as JSON.

``python called_programs.py (cProfile | hotspan.cprofile) PROGRAM``
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any


def fib(n: int) -> int:
    """Recursion."""
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n: int) -> bool:
    """Recursion of two functions."""
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    """The other one."""
    return n != 0 and even(n - 1)


def count(n: int) -> Iterator[int]:
    """A generator."""
    yield from range(n)


def recursion() -> None:
    """Direct and mutual recursion."""
    fib(10)
    even(9)


def generators() -> None:
    """Generators that run to their end, are left, closed and thrown into."""
    list(count(5))
    sum(number * number for number in count(4))
    left = count(3)
    next(left)
    closed = count(3)
    next(closed)
    closed.close()
    thrown = count(3)
    next(thrown)
    with suppress(RuntimeError):
        thrown.throw(RuntimeError)


def raises() -> None:
    """Leave by an exception."""
    raise KeyError


def exceptions() -> None:
    """Exceptions of Python functions and of functions of C."""
    for failing in (
        raises,
        lambda: int("no number"),
        lambda: [].pop(),
        lambda: {}["missing"],
    ):
        try:
            failing()
        except (KeyError, ValueError, IndexError):
            len("caught")


def builtins() -> None:
    """Functions and methods of C, called directly, bound and through others."""
    numbers = [3, 1, 2]
    numbers.append(4)
    append = numbers.append
    append(5)
    sorted(numbers, key=lambda number: -number)
    list(map(fib, [1, 2, 3]))
    dict.fromkeys("ab")
    ",".join(["a", "b"])
    isinstance(1, int)
    "text".upper().lower()


class Counter:
    """Methods of every kind."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def add(self, value: int) -> None:
        """A method."""
        self.values.append(value)

    @property
    def total(self) -> int:
        """A property."""
        return sum(self.values)

    @classmethod
    def make(cls) -> Counter:
        """A class method."""
        return cls()

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *_: object) -> None:
        self.values.clear()


def classes() -> None:
    """Methods, properties, class methods, context managers."""
    with Counter.make() as counter:
        counter.add(1)
        counter.add(2)
        assert counter.total == 3


def comprehensions() -> None:
    """Comprehensions of every kind."""
    squares = [fib(number) for number in range(3)]
    {number: len(str(number)) for number in squares}
    {abs(number) for number in squares}
    tuple(number for number in squares if bool(number))


async def wait(turns: int) -> int:
    """A coroutine that gives way."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return turns


async def gather() -> int:
    """Coroutines side by side."""
    return sum(await asyncio.gather(*(wait(turns) for turns in range(4))))


def coroutines() -> None:
    """An event loop."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(gather())
    finally:
        loop.close()


def threads() -> None:
    """Threads that call the same recursive function at the same time."""
    ready = threading.Barrier(4)

    def work() -> None:
        ready.wait()
        for _ in range(20):
            fib(8)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


PROGRAMS: dict[str, Callable[[], None]] = {
    program.__name__: program
    for program in (recursion, generators, exceptions, builtins, classes, comprehensions, coroutines, threads)
}


def main() -> None:
    """Run one program under one profiler."""
    profile: Any = importlib.import_module(sys.argv[1]).Profile()
    program = PROGRAMS[sys.argv[2]]
    profile.enable()
    program()
    profile.disable()
    profile.create_stats()
    rows = [
        [list(function), primitive, calls, [[list(caller), *sums[:2]] for caller, sums in callers.items()]]
        for function, (primitive, calls, _, _, callers) in profile.stats.items()
    ]
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
