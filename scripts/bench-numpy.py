"""NumPy's part of scripts/bench-numpy: arguments are the program that computes the same, and the cases wanted."""

import statistics
import subprocess
import sys
import time

import numpy as np

ROUNDS = 7
SIDE, FACTOR, SIGNAL = 4096, 1024, 1 << 20


def uniform(factor):
    """The numbers of demo/beside_numpy.rs."""
    bits = np.arange(SIDE * SIDE, dtype=np.uint32) * np.uint32(factor)
    return (bits.astype(np.float32) * np.float32(2.0**-32)).reshape(SIDE, SIDE)


a, b = uniform(2_654_435_761) * np.float32(4) - np.float32(2), uniform(1_640_531_527) + np.float32(1e-6)
x, y = (np.ascontiguousarray(matrix[:FACTOR, :FACTOR]) for matrix in (a, b))
row, signal = b[:1], a.reshape(-1)[: 2 * SIGNAL].view(np.complex64)
image = signal.reshape(1024, 1024)


def softmax(values):
    exponentials = np.exp(values - values.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def layer_norm(values):
    centred = values - values.mean(axis=1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + np.float32(1e-5))


CASES = {
    "add": lambda: a + b,
    "add a row": lambda: a + row,
    "a * 2 + b": lambda: a * np.float32(2) + b,
    "divide": lambda: a / (b + np.float32(1)),
    "sqrt": lambda: np.sqrt(b),
    "exp": lambda: np.exp(a),
    "log": lambda: np.log(b),
    "sin": lambda: np.sin(a),
    "tanh": lambda: np.tanh(a),
    "power": lambda: np.power(b, a),
    "maximum": lambda: np.maximum(a, b),
    "less": lambda: np.less(a, b),
    "where": lambda: np.where(a < b, a, b),
    "to int32": lambda: a.astype(np.int32),
    "to float16": lambda: a.astype(np.float16),
    "transposed copy": lambda: np.ascontiguousarray(a.T),
    "concatenate": lambda: np.concatenate([a, b], axis=1),
    "sum": lambda: b.sum(),
    "sum of rows": lambda: b.sum(axis=1),
    "sum of columns": lambda: b.sum(axis=0),
    "max": lambda: a.max(),
    "argmax of rows": lambda: a.argmax(axis=1),
    "std of rows": lambda: a.std(axis=1),
    "softmax": lambda: softmax(a),
    "layer norm": lambda: layer_norm(a),
    "matmul": lambda: x @ y,
    "fft": lambda: np.fft.fft(signal),
    "fft2": lambda: np.fft.fft2(image),
}


def magnitude(values):
    """Of complex numbers that of their parts."""
    values = np.asarray(values)
    parts = values.view(np.float32) if np.iscomplexobj(values) else values
    with np.errstate(invalid="ignore"):
        return float(np.abs(parts.astype(np.float64)).sum())


class Beside:
    """The other program, asked for one case at a time."""

    def __init__(self, program, threads):
        self.pipe = subprocess.Popen([program, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, case):
        self.pipe.stdin.write(case + "\n")
        self.pipe.stdin.flush()
        answer = self.pipe.stdout.readline().split()
        if len(answer) != 2:
            sys.exit(f"bench-numpy: no answer to {case}: {' '.join(answer)}")
        return float(answer[0]), float(answer[1])


def main(program, names):
    unknown = [name for name in names if name not in CASES]
    if unknown:
        sys.exit(f"bench-numpy: there is no case {unknown[0]}; there are {', '.join(CASES)}")
    one, all_threads = Beside(program, 1), Beside(program, 0)
    print(f"NumPy {np.__version__}; medians of {ROUNDS} rounds in milliseconds, ratios to NumPy's")
    print(f"{'':16}{'NumPy':>9}{'1 thread':>10}{'ratio':>7}{'all':>9}{'ratio':>7}{'range':>13}")
    wrong = 0
    for name in names or CASES:
        compute = CASES[name]
        expected = magnitude(compute())
        _, found = one.ask(name)
        all_threads.ask(name)
        numpy_ms, one_ms, all_ms = [], [], []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            compute()
            numpy_ms.append((time.perf_counter() - begun) * 1e3)
            one_ms.append(one.ask(name)[0])
            all_ms.append(all_threads.ask(name)[0])
        theirs, single, several = (statistics.median(times) for times in (numpy_ms, one_ms, all_ms))
        ratios = [their / our for their, our in zip(numpy_ms, all_ms)]
        spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
        print(f"{name:16}{theirs:9.2f}{single:10.2f}{theirs / single:7.2f}{several:9.2f}{theirs / several:7.2f}{spread:>13}")
        if not abs(found - expected) <= 1e-4 * abs(expected):
            wrong += 1
            print(f"  WRONG: magnitudes add up to {found:.9g}, NumPy's to {expected:.9g}")
    print("all results agree with NumPy's" if wrong == 0 else f"{wrong} results are wrong")
    sys.exit(1 if wrong else 0)


main(sys.argv[1], sys.argv[2:])
