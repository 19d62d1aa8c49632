"""Compiles each shaders/*/*.cu into a .ptx beside it: in the shapes that it lists and every layout, or in its variants, else as it is; see scripts/ptx.

The file begins with a hash of the source, which tests/shaders.rs compares. Each variant is a whole PTX module under a line `//# name`, the
kernel's in reports, so that a driver compiles only those that are used.
"""

import ctypes
import itertools
import pathlib
import re
import sys

FOLDER = pathlib.Path("shaders")
# The oldest GPUs that the oldest driver drives, where a source names no other; its compiler makes the best of what the user's has.
OLDEST = "compute_52"
OPTIONS = ["--std=c++17"]


def fnv1a(data):
    """FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def kernel_name(path, source):
    """The kernel's name in reports: what the source says, else its path, or its folder's if it is the only one there."""
    if told := re.search(r"^//# kernel (\S+)$", source, re.MULTILINE):
        return told[1]
    return path.stem if path.stem == path.parent.name else f"{path.parent.name}/{path.stem}"


def variants(kernel, source):
    """Name and definitions of each."""
    shapes = re.findall(r"^//# shape (\S+) (.+)$", source, re.MULTILINE)
    named = re.findall(r"^//# variant (\S+) (.+)$", source, re.MULTILINE)
    for variant, definitions in named:
        yield f"{kernel} {variant}", definitions.split()
    if not shapes and not named:
        yield kernel, []
    for shape, definitions in shapes:
        tile = [f"TILE_{name}={size}" for name, size in zip("MNK", shape.split("x"))]
        for transpose_a, transpose_b in itertools.product((0, 1), repeat=2):
            layout = [f"TRANSPOSE_A={transpose_a}", f"TRANSPOSE_B={transpose_b}"]
            yield f"{kernel} {shape} {'nt'[transpose_a]}{'nt'[transpose_b]}", tile + definitions.split() + layout


def included(path):
    """What a source includes, in order."""
    names = re.findall(r'^#include "(.+)"$', path.read_text(), re.MULTILINE)
    return [part for name in names for part in [*included(path.parent / name), path.parent / name]]


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

    def compile(self, path, source, definitions):
        program = ctypes.c_void_p()
        named = re.search(r"^//# arch (\S+)$", source, re.MULTILINE)
        # A shape may be for newer GPUs than the others of its file.
        newer = [text[len("arch="):] for text in definitions if text.startswith("arch=")]
        definitions = [text for text in definitions if not text.startswith("arch=")]
        architecture = newer[0] if newer else named[1] if named else OLDEST
        options = [*OPTIONS, f"--gpu-architecture={architecture}", f"--include-path={path.parent}"]
        self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), path.name.encode(), 0, None, None)
        options = [option.encode() for option in options + [f"-D{definition}" for definition in definitions]]
        failed = self.library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = self.text(program, "ProgramLog")
        if failed or "error" in log:
            sys.exit(f"{path} {' '.join(definitions)}:\n{log}")
        return self.text(program, "PTX")


def stripped(ptx):
    """Without comments, indentation and empty lines, and without the names of architectures that the compiler puts into each module."""
    lines = (line.split("//")[0].strip() for line in ptx.splitlines())
    return "\n".join(line for line in lines if line and "nv6target" not in line) + "\n"


def main():
    nvrtc = Nvrtc(pathlib.Path(sys.argv[1]))
    for path in sorted(FOLDER.glob("*/*.cu")):
        source = path.read_text()
        # A template, or what comes behind generated text.
        if re.search("^//# (if|for) |compiled at run time", source, re.MULTILINE):
            continue
        # With what it includes.
        parts = included(path) + [path]
        value = fnv1a(b"".join(part.read_bytes() for part in parts))
        text = f"// scripts/ptx made this from {' and '.join(part.name for part in parts)}, fnv1a {value:016x}\n"
        for name, definitions in variants(kernel_name(path, source), source):
            text += f"//# {name}\n{stripped(nvrtc.compile(path, source, definitions))}"
        ptx = path.with_suffix(".ptx")
        ptx.write_text(text)
        print(f"{ptx}: {ptx.stat().st_size // 1024} KiB")


main()
