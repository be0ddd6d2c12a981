"""A program with every kind of function a line profiler meets. Run by the tests under several profilers."""

# ruff: noqa: F821, C408, RET504, B018 - profile is a builtin under a profiler; the lines are the point
# fmt: off

import asyncio
import contextlib
import functools
import threading


@profile
def loop(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        total += i
    else:
        total += 1
    while total > 100:
        total //= 2
    return total


@profile
def several_lines(a, b):
    value = max(
        a,
        min(b,
            a + b),
    )
    text = (
        "x"
        f"{value}"
    )
    if (value > 1 and
            text):
        value += 1
    return dict(a=a,
                b=b)


@profile
def comprehensions(n):
    squares = [i * i for i in range(n)]
    pairs = {i: j
             for i in range(n)
             for j in range(2)}
    return sum(x for x in squares) + len(pairs)


@profile
def generator(n):
    for i in range(n):
        got = yield i
        if got:
            return got


@profile
def thrown_into():
    try:
        yield 1
    except KeyError:
        yield 2
    finally:
        done = True
    return done


@profile
async def coroutine(n):
    total = 0
    for i in range(n):
        await asyncio.sleep(0)
        total += await inner(i)
    return total


@profile
async def inner(i):
    await asyncio.sleep(0)
    return i


@profile
async def async_generator(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


@profile
def in_thread(n):
    total = 0
    for i in range(n):
        total += i
    return total


@profile
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def twice(function):
    @functools.wraps(function)
    def wrapper(*args):
        function(*args)
        return function(*args)

    return wrapper


@twice
@profile
def decorated(x):
    y = x + 1
    return y


@profile
def raises(n):
    for i in range(n):
        try:
            if i % 2:
                raise ValueError(i)
        except ValueError:
            pass
    with contextlib.suppress(KeyError):
        raise KeyError
    raise RuntimeError("out")


class Shape:
    def __init__(self, side):
        self.side = side

    @profile
    def area(self):
        return self.side**2

    @staticmethod
    @profile
    def unit():
        return 1

    @classmethod
    @profile
    def make(cls):
        made = cls(2)
        return made

    @property
    @profile
    def half(self):
        return self.side / 2


@profile
def never_called():
    return None


async def main():
    await asyncio.gather(coroutine(3), coroutine(4))
    return [x async for x in async_generator(3)]


if __name__ == "__main__":
    loop(10)
    several_lines(1, 2)
    several_lines(3, 4)
    comprehensions(4)
    list(generator(4))
    sender = generator(5)
    next(sender)
    with contextlib.suppress(StopIteration):
        sender.send("stop")
    thrower = thrown_into()
    next(thrower)
    thrower.throw(KeyError)
    list(thrower)
    closed = generator(3)
    next(closed)
    closed.close()
    asyncio.run(main())
    threads = [threading.Thread(target=in_thread, args=(50,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fib(7)
    decorated(1)
    with contextlib.suppress(RuntimeError):
        raises(4)
    shape = Shape.make()
    shape.area()
    Shape.unit()
    shape.half
