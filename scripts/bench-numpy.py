"""NumPy's part of scripts/bench-numpy: arguments are the program that computes the same, and what the script was given."""

import contextlib
import ctypes
import glob
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.fft
import scipy.signal
import scipy.special

ROUNDS = 7
# What a measurement takes at least: short cases are repeated.
LEAST_MS = 4.0
F32 = np.float32


def cases(elements):
    """What is computed of operands of so many elements: the same as in demo/beside_numpy.rs, some beside more than one way to do it."""
    # Rows, columns, layers, side of factors, complex numbers of a signal, side of an image, a power of 3, a prime, channels, side of planes.
    rows, columns, layers, factor, signal, image, odd, prime, channels, side = {
        10_000: (100, 100, 10, 100, 1 << 12, 64, 2_187, 4_999, 8, 32),
        1_000_000: (1_000, 1_000, 10, 500, 1 << 18, 512, 177_147, 249_989, 16, 224),
        60_000_000: (7_500, 8_000, 25, 1_024, 1 << 20, 1_024, 531_441, 524_287, 64, 224),
    }[elements]

    def uniform(factor):
        """The numbers of demo/beside_numpy.rs."""
        bits = np.arange(elements, dtype=np.uint32) * np.uint32(factor)
        return (bits.astype(F32) * F32(2.0**-32)).reshape(rows, columns)

    a, b = uniform(2_654_435_761) * F32(4) - F32(2), uniform(1_640_531_527) + F32(1e-6)
    x, y = (np.ascontiguousarray(matrix[:factor, :factor]) for matrix in (a, b))
    row, column, vector = b[:1], np.ascontiguousarray(b[:, :1]), np.ascontiguousarray(b[0])
    tall = np.ascontiguousarray(b[:, 0])
    cube = a.reshape(layers, rows // layers, columns)
    ah, bh, ai, bi = a.astype(np.float16), b.astype(np.float16), (a * F32(1000)).astype(np.int32), (b * F32(9)).astype(np.int32)
    flat = a.reshape(-1)
    waves = flat[: 2 * signal].view(np.complex64)
    picture = flat[: 2 * image * image].view(np.complex64).reshape(image, image)
    real, real_odd, real_prime = flat[: 2 * signal], flat[:odd], flat[:prime]
    spectrum = np.fft.rfft(real)
    planes = flat[: channels * side * side].reshape(channels, side, side)
    filters = b.reshape(-1)[: channels * channels * 9].reshape(channels, channels * 9)
    taps = b.reshape(-1)[:31].copy()
    kernel = b.reshape(-1)[:9].copy().reshape(3, 3)
    batch = min(elements // 1024, 1000)
    bx, by = (matrix.reshape(-1)[: batch * 1024].reshape(batch, 32, 32) for matrix in (a, b))
    bx_4, by_4 = bx.reshape(-1, 4, 4), by.reshape(-1, 4, 4)
    points, turn = bx.reshape(-1, 4), by.reshape(-1)[:12].reshape(4, 3)
    small, other = a.reshape(-1)[:256].reshape(16, 16).copy(), b.reshape(-1)[:256].reshape(16, 16).copy()

    def softmax(values, axis):
        exponentials = np.exp(values - values.max(axis=axis, keepdims=True))
        return exponentials / exponentials.sum(axis=axis, keepdims=True)

    def log_softmax(values):
        distances = values - values.max(axis=1, keepdims=True)
        return distances - np.log(np.exp(distances).sum(axis=1, keepdims=True))

    def layer_norm(values):
        centred = values - values.mean(axis=1, keepdims=True)
        return centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + F32(1e-5)) * row + row

    def convolved():
        seen = np.lib.stride_tricks.sliding_window_view(planes, (3, 3), axis=(1, 2))
        return filters @ seen.transpose(0, 3, 4, 1, 2).reshape(channels * 9, -1)

    return {
        "add": lambda: a + b,
        "add a row": lambda: a + row,
        "add a column": lambda: a + column,
        "add a number": lambda: a + F32(2),
        "a * 2 + b": lambda: a * F32(2) + b,
        "divide": lambda: a / (b + F32(1)),
        "sqrt": lambda: np.sqrt(b),
        "abs": lambda: np.abs(a),
        "square": lambda: np.square(a),
        "exp": lambda: np.exp(a),
        "log": lambda: np.log(b),
        "sin": lambda: np.sin(a),
        "cos": lambda: np.cos(a),
        "tan": lambda: np.tan(a),
        "atan": lambda: np.arctan(a),
        "tanh": lambda: np.tanh(a),
        "sigmoid": lambda: F32(1) / (F32(1) + np.exp(-a)),
        "erf": lambda: scipy.special.erf(a),
        "power": lambda: np.power(b, a),
        "floor": lambda: np.floor(a),
        "maximum": lambda: np.maximum(a, b),
        "relu": lambda: np.maximum(a, F32(0)),
        "clamp": lambda: np.clip(a, F32(-1), F32(1)),
        "less": lambda: np.less(a, b),
        "equal": lambda: np.equal(a, b),
        "less and greater": lambda: (a < b) & (a > F32(-1)),
        "where": lambda: np.where(a < b, a, b),
        "to int32": lambda: a.astype(np.int32),
        "to float16": lambda: a.astype(np.float16),
        "from float16": lambda: ah.astype(F32),
        "from int32": lambda: ai.astype(F32),
        "add f16": lambda: ah + bh,
        "exp f16": lambda: np.exp(ah),
        "add i32": lambda: ai + bi,
        "multiply i32": lambda: ai * bi,
        "divide u32": lambda: bi.view(np.uint32) // (bi.view(np.uint32) + np.uint32(1)),
        "maximum i32": lambda: np.maximum(ai, bi),
        "less i32": lambda: np.less(ai, bi),
        "copy": lambda: a.copy(),
        "transpose": lambda: np.ascontiguousarray(a.T),
        "transpose 0 2 1": lambda: np.ascontiguousarray(cube.transpose(0, 2, 1)),
        "transpose 1 0 2": lambda: np.ascontiguousarray(cube.transpose(1, 0, 2)),
        "transpose 2 0 1": lambda: np.ascontiguousarray(cube.transpose(2, 0, 1)),
        "transpose 2 1 0": lambda: np.ascontiguousarray(cube.transpose(2, 1, 0)),
        "transpose f16": lambda: np.ascontiguousarray(ah.T),
        "add transposed": lambda: a[:factor, :factor] + b[:factor, :factor].T,
        "flip rows": lambda: np.ascontiguousarray(a[::-1]),
        "flip columns": lambda: np.ascontiguousarray(a[:, ::-1]),
        "every second": lambda: np.ascontiguousarray(a[:, ::2]),
        "every second row": lambda: np.ascontiguousarray(a[::2]),
        "part": lambda: np.ascontiguousarray(a[rows // 4 : rows // 4 * 3, columns // 4 : columns // 4 * 3]),
        "concatenate rows": lambda: np.concatenate([a, b], axis=0),
        "concatenate columns": lambda: np.concatenate([a, b], axis=1),
        "pad": lambda: np.pad(a, ((3, 3), (5, 5))),
        "repeat a row": lambda: np.ascontiguousarray(np.broadcast_to(row, a.shape)),
        "sum": lambda: b.sum(),
        "sum of rows": lambda: b.sum(axis=1),
        "sum of columns": lambda: b.sum(axis=0),
        "sum of first": lambda: cube.sum(axis=0),
        "sum of middle": lambda: cube.sum(axis=1),
        "sum of last": lambda: cube.sum(axis=2),
        "sum of f16": lambda: bh.sum(axis=1, dtype=F32),
        "sum of i32": lambda: ai.sum(axis=1, dtype=np.int32),
        "sum of products": lambda: (a * b).sum(),
        "mean of rows": lambda: b.mean(axis=1),
        "mean of columns": lambda: b.mean(axis=0),
        "max": lambda: a.max(),
        "max of rows": lambda: a.max(axis=1),
        "max of columns": lambda: a.max(axis=0),
        "max of middle": lambda: cube.max(axis=1),
        "max of i32": lambda: ai.max(),
        "min of rows": lambda: a.min(axis=1),
        "argmax": lambda: a.argmax(),
        "argmax of rows": lambda: a.argmax(axis=1),
        "argmax of columns": lambda: a.argmax(axis=0),
        "argmin of rows": lambda: a.argmin(axis=1),
        "argmax of i32": lambda: ai.argmax(axis=1),
        "prod of rows": lambda: (b * F32(0.01) + F32(0.995)).prod(axis=1),
        "var of rows": lambda: a.var(axis=1),
        "std": lambda: a.std(),
        "std of rows": lambda: a.std(axis=1),
        "std of columns": lambda: a.std(axis=0),
        "norm": lambda: np.linalg.norm(flat),
        "norm of rows": lambda: np.linalg.norm(a, axis=1),
        "any": lambda: (a > F32(3)).any(),
        "log sum exp": lambda: scipy.special.logsumexp(a, axis=1),
        "softmax": lambda: softmax(a, 1),
        "softmax of columns": lambda: softmax(a, 0),
        "log softmax": lambda: log_softmax(a),
        "layer norm": lambda: layer_norm(a),
        "matmul": lambda: x @ y,
        "matmul transposed": lambda: x @ y.T,
        "matmul of 16": lambda: small @ other,
        "batch of 32": lambda: bx @ by,
        "batch of 4": lambda: bx_4 @ by_4,
        "points by 4x3": lambda: points @ turn,
        "matrix by vector": lambda: a @ vector,
        "vector by matrix": lambda: tall @ a,
        "conv1d (NumPy)": lambda: np.convolve(real, taps[::-1], "valid"),
        "conv1d (SciPy)": lambda: scipy.signal.correlate(real, taps, "valid"),
        "conv2d of a plane": lambda: scipy.signal.correlate2d(planes[0], kernel, "valid"),
        "conv2d": convolved,
        "max pool": lambda: planes.reshape(channels, side // 2, 2, side // 2, 2).max(axis=(2, 4)),
        "average pool": lambda: planes.reshape(channels, side // 2, 2, side // 2, 2).mean(axis=(2, 4)),
        "fft (NumPy)": lambda: np.fft.fft(waves),
        "fft (SciPy)": lambda: scipy.fft.fft(waves),
        "ifft": lambda: scipy.fft.ifft(waves),
        "rfft": lambda: scipy.fft.rfft(real),
        "irfft": lambda: scipy.fft.irfft(spectrum),
        "rfft of 3^n": lambda: scipy.fft.rfft(real_odd),
        "rfft of a prime": lambda: scipy.fft.rfft(real_prime),
        "fft of rows": lambda: scipy.fft.fft(picture, axis=1),
        "fft of columns": lambda: scipy.fft.fft(picture, axis=0),
        "fft2 (NumPy)": lambda: np.fft.fft2(picture),
        "fft2 (SciPy)": lambda: scipy.fft.fft2(picture),
        "fft2 (SciPy, all)": lambda: scipy.fft.fft2(picture, workers=-1),
        "rfft2": lambda: scipy.fft.rfft2(picture.real),
    }


# What NumPy has its BLAS compute, on all threads unless it is told otherwise.
PRODUCTS = ("matmul", "batch", "points", "matrix by", "vector by", "conv2d")

# For so long its threads keep their cores busy after a product, in case there is another.
BUSY_S = 0.2


def one_thread():
    """Keeps NumPy's BLAS, which comes with it, to one thread; gives what takes that back, none where it is another BLAS."""
    for library in glob.glob(os.path.join(os.path.dirname(np.__file__), os.pardir, "numpy.libs", "libscipy_openblas64_*")):
        with contextlib.suppress(OSError, AttributeError):
            blas = ctypes.CDLL(library)
            threads = blas.scipy_openblas_get_num_threads64_()
            blas.scipy_openblas_set_num_threads64_(1)
            return lambda: blas.scipy_openblas_set_num_threads64_(threads)
    return None


# NumPy adds up all squares in f32, one after the other; where the CPU has arithmetic of f16 its exp is of that.
RELATIVE_ERRORS = {"norm": 1e-3, "exp f16": 5e-4}


def weighed(values):
    """The sum of magnitudes and that of the values themselves, each by a weight that its place has."""
    values = np.ascontiguousarray(values)
    parts = values.view(np.float64 if values.dtype == np.complex128 else F32) if np.iscomplexobj(values) else values
    parts = parts.reshape(-1).astype(np.float64)
    weights = (np.arange(parts.size, dtype=np.uint32) * np.uint32(2_654_435_761)).astype(np.float64) * 2.0**-32 + 0.5
    return [float((np.abs(parts) * weights).sum()), float((parts * weights).sum())]


def agree(name, found, expected):
    """Whether sums are those of one result; values that cancel out are no more exact than their magnitudes."""
    bound = RELATIVE_ERRORS.get(name, 1e-4) * expected[0]
    return len(found) == 2 and all(abs(ours - theirs) <= bound for ours, theirs in zip(found, expected))


class Beside:
    """The other program, asked for one case at a time."""

    def __init__(self, program, threads, elements):
        self.pipe = subprocess.Popen([program, str(threads), str(elements)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, case, repeats):
        """Milliseconds of each repetition."""
        return self.answer(case, repeats)[0]

    def sums(self, case):
        """The weighed sums of the result."""
        return self.answer(case, 0)

    def answer(self, case, repeats):
        """The numbers that it says."""
        self.pipe.stdin.write(f"{repeats} {case.split(' (')[0]}\n")
        self.pipe.stdin.flush()
        answer = self.pipe.stdout.readline()
        try:
            numbers = [float(number) for number in answer.split()]
        except ValueError:
            numbers = []
        return numbers or sys.exit(f"bench-numpy: no answer to {case}: {answer}")


def timed(compute, repeats):
    """Milliseconds of each repetition."""
    begun = time.perf_counter()
    for _ in range(repeats):
        compute()
    return (time.perf_counter() - begun) * 1e3 / repeats


def compare(program, elements, names):
    """Gives how many results are wrong."""
    of_size = cases(elements)
    unknown = [name for name in names if name not in of_size]
    if unknown:
        sys.exit(f"bench-numpy: there is no case {unknown[0]}; there are {', '.join(of_size)}")
    one, all_threads = Beside(program, 1, elements), Beside(program, 0, elements)
    print(f"{elements:.0e} elements: milliseconds, medians of {ROUNDS} rounds, and how many times as fast as NumPy that is, then so of the best rounds")
    print(f"{'':20}{'NumPy':>10}{'1 thread':>11}{'times':>7}{'best':>6}{'all':>11}{'times':>7}{'best':>6}", flush=True)
    wrong = 0
    for name in names or of_size:
        compute = of_size[name]
        expected = weighed(compute())
        # What is wrong on one thread or on all.
        found = [beside.sums(name) for beside in (one, all_threads)]
        repeats = max(1, min(1000, int(LEAST_MS / timed(compute, 2))))
        in_turns = [lambda repeats: timed(compute, repeats), lambda repeats: one.ask(name, repeats), lambda repeats: all_threads.ask(name, repeats)]
        if name.startswith(PRODUCTS):
            # Beside one thread, one.
            def alone(repeats):
                again = one_thread()
                took = timed(compute, repeats)
                if again:
                    again()
                return took

            in_turns.append(alone)
        times = [[] for _ in in_turns]
        for _ in range(ROUNDS):
            for ask, measured in zip(in_turns, times):
                # Not timed, since the others' operands are in the cache, and cores that slept take their time: as often as what is timed, since the
                # third cache keeps operands only when they were asked for some times.
                if name.startswith(PRODUCTS):
                    time.sleep(BUSY_S)
                ask(repeats)
                measured.append(ask(repeats))
        theirs, one_of_ours, all_of_ours, *theirs_alone = ((statistics.median(each), min(each)) for each in times)
        beside = [(one_of_ours, theirs_alone[0] if theirs_alone else theirs), (all_of_ours, theirs)]
        columns = "".join(f"{our:11.4f}{median / our:7.2f}{least / best:6.2f}" for (our, best), (median, least) in beside)
        print(f"{name:20}{theirs[0]:10.4f}{columns}", flush=True)
        for found in found:
            if not agree(name, found, expected):
                wrong += 1
                ours, theirs = (" and ".join(f"{number:.9g}" for number in sums) for sums in (found, expected))
                print(f"  WRONG: weighed magnitudes and values add up to {ours}, NumPy's to {theirs}")
    return wrong


def main(program, *names):
    sizes = [10_000, 1_000_000, 60_000_000]
    if names[:1] == ("--elements",):
        chosen = int(float(names[1])) if names[1:] else 0
        if chosen not in sizes:
            sys.exit("bench-numpy: --elements is 1e4, 1e6 or 6e7")
        sizes, names = [chosen], names[2:]
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}")
    wrong = sum(compare(program, elements, names) for elements in sizes)
    print("all results agree with NumPy's" if wrong == 0 else f"{wrong} results are wrong")
    sys.exit(1 if wrong else 0)


main(*sys.argv[1:])
