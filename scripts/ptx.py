"""Compiles the shapes that shaders/matmul/tiled.cu lists, in every layout, into tiled.ptx beside it; see scripts/ptx.

The file begins with a hash of the source, which tests/shaders.rs compares. Each variant is a whole PTX module under a line `//# name`, so
that a driver compiles only those that are used.
"""

import ctypes
import itertools
import pathlib
import re
import sys

SOURCE = pathlib.Path("shaders/matmul/tiled.cu")
PTX = SOURCE.with_suffix(".ptx")
# The oldest GPUs that the oldest driver drives; its compiler makes the best of what the user's has.
OPTIONS = ["--gpu-architecture=compute_52", "--std=c++17"]


def fnv1a(data):
    """FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def variants(source):
    """Name and definitions of each."""
    for shape, definitions in re.findall(r"^//# shape (\S+) (.+)$", source, re.MULTILINE):
        tile = [f"TILE_{name}={size}" for name, size in zip("MNK", shape.split("x"))]
        for transpose_a, transpose_b in itertools.product((0, 1), repeat=2):
            layout = [f"TRANSPOSE_A={transpose_a}", f"TRANSPOSE_B={transpose_b}"]
            yield f"{shape} {'nt'[transpose_a]}{'nt'[transpose_b]}", tile + definitions.split() + layout


class Nvrtc:
    """NVIDIA's compiler as a library."""

    def __init__(self, folder):
        builtins, library = (sorted(folder.glob(name))[0] for name in ("libnvrtc-builtins.so*", "libnvrtc.so*"))
        # The second looks for the first by name alone.
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(library))

    def text(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, text)
        return text.value.decode()

    def compile(self, source, definitions):
        program = ctypes.c_void_p()
        self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), SOURCE.name.encode(), 0, None, None)
        options = [option.encode() for option in OPTIONS + [f"-D{definition}" for definition in definitions]]
        failed = self.library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = self.text(program, "ProgramLog")
        if failed or "error" in log:
            sys.exit(f"{' '.join(definitions)}:\n{log}")
        return self.text(program, "PTX")


def stripped(ptx):
    """Without comments, indentation and empty lines, and without the names of architectures that the compiler puts into each module."""
    lines = (line.split("//")[0].strip() for line in ptx.splitlines())
    return "\n".join(line for line in lines if line and "nv6target" not in line) + "\n"


def main():
    source = SOURCE.read_bytes()
    header = f"// scripts/ptx made this from {SOURCE.name}, fnv1a {fnv1a(source):016x}\n"
    nvrtc = Nvrtc(pathlib.Path(sys.argv[1]))
    parts = [f"//# {name}\n{stripped(nvrtc.compile(source.decode(), definitions))}" for name, definitions in variants(source.decode())]
    PTX.write_text(header + "".join(parts))
    print(f"{PTX}: {len(parts)} variants, {PTX.stat().st_size // 1024} KiB")


main()
