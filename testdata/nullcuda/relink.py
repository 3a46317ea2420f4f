"""Let an object that carries the vendor's CUDA runtime inside call ours instead.

    relink.py OBJECT...

NVIDIA's own runtime needs undocumented tables of the driver, which the null driver
does not have. Where it was linked statically, and the object still has the names
of its local functions, every function of the runtime's begins with a jump to the
function of the same name in ours:

    cudaMalloc:  lea name(%rip), %r11
                 jmp common
    name:        "cudaMalloc"
    common:      save the arguments; call dlopen(RUNTIME, RTLD_NOW); call dlsym(%rax, %r11)
                 restore the arguments; jmp *%rax

The name lies behind the jump in the room of the function itself, the common part
and names that are too long in that of the function with the most. The files are changed where they lie; one that
carries no runtime, or was changed before, stays as it is.
"""
import dataclasses
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
JUMP = 12                     # bytes of the lea and the jmp
LEA = b"\x4c\x8d\x1d"
RUNTIME = b"libcudart.so.11.0\0"
SAVE = bytes.fromhex("57 56 52 51 41 50 41 51 41 53")     # push rdi, rsi, rdx, rcx, r8, r9, r11
OPEN = (b"\x48\x8d\x3d", bytes.fromhex("be 02 00 00 00 ff 15"))  # lea RUNTIME, rdi; mov RTLD_NOW, esi; call *dlopen
FIND = bytes.fromhex("48 89 c7 48 8b 34 24 ff 15")        # mov rax, rdi; mov (rsp), rsi; call *dlsym
LEAVE = bytes.fromhex("41 5b 41 59 41 58 59 5a 5e 5f ff e0")  # pop all; jmp *rax


class Failure(Exception):
    """Something the caller can act on; the message says what."""


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    address: int
    size: int

    def room(self):
        """What is left behind the jump and the name."""
        return self.size - JUMP - len(self.name) - 1


def output_of(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{command[0]} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def exported():
    """The functions that our runtime has in any version."""
    lines = (HERE / "runtime" / "exports.txt").read_text().splitlines()
    return {line.split()[0] for line in lines if line and not line.startswith("#")}


def carried(path):
    """The runtime's functions in an object that are no others' business."""
    ours, found = exported(), []
    for line in output_of("nm", "-S", "--defined-only", path).splitlines():
        address, size, kind, name = (line.split() + [""] * 4)[:4]
        if kind == "t" and name in ours:
            found.append(Function(name, int(address, 16), int(size, 16)))
    return found


def offsets(path):
    """A function from an address in the code to its place in the file."""
    segments = [tuple(int(number, 16) for number in line.split()[1:5])
                for line in output_of("readelf", "-lW", path).splitlines() if re.match(r"\s+LOAD\s.*R E", line)]

    def offset(address):
        for at, start, _, size in segments:
            if start <= address < start + size:
                return address - start + at
        raise Failure(f"{path}: {address:#x} lies in no segment of code")
    return offset


def slots(path):
    """{name: the address of the word through which the object calls that function of the loader}."""
    text = output_of("readelf", "-rW", path)
    found = {name: re.search(rf"^([0-9a-f]+) .* R_X86_64_(?:JUMP_SLOT|GLOB_DAT) .* {name}(?:@|$| )", text, re.M) for name in ("dlopen", "dlsym")}
    if missing := [name for name, place in found.items() if not place]:
        raise Failure(f"{path}: carries a CUDA runtime, but does not call {' and '.join(missing)}")
    return {name: int(place[1], 16) for name, place in found.items()}


def away(target, end):
    """The operand of an instruction that ends there."""
    return struct.pack("<i", target - end)


def common_part(at, words):
    """What all functions jump to, with the name of the runtime behind it."""
    text = SAVE + OPEN[0]
    rest = 4 + len(OPEN[1]) + 4 + len(FIND) + 4 + len(LEAVE)
    text += away(len(text) + rest, len(text) + 4) + OPEN[1]
    text += away(words["dlopen"], at + len(text) + 4) + FIND
    text += away(words["dlsym"], at + len(text) + 4) + LEAVE
    return text + RUNTIME


def code(functions, words):
    """[(address, bytes)] to write."""
    host = max(functions, key=Function.room)
    common = host.address + host.size - host.room()
    pieces = [(common, common_part(common, words))]
    free = common + len(pieces[0][1])
    for function in functions:
        at, name = function.address, function.name.encode() + b"\0"
        if function.size < JUMP:
            raise Failure(f"{function.name} has no room for a jump")
        if function.room() >= 0:
            place = at + JUMP
        else:
            place, free = free, free + len(name)
        pieces += [(at, LEA + away(place, at + 7) + b"\xe9" + away(common, at + JUMP)), (place, name)]
    if free > host.address + host.size:
        raise Failure("no function of the runtime has room for the common part")
    return pieces


def relink(path):
    """Changes the object if it has to be; says how many functions it has of the runtime."""
    functions = carried(path)
    if not functions:
        return 0
    offset = offsets(path)
    with path.open("r+b") as file:
        file.seek(offset(functions[0].address))
        if file.read(len(LEA)) != LEA:
            for address, text in code(functions, slots(path)):
                file.seek(offset(address))
                file.write(text)
    return len(functions)


def main():
    for name in sys.argv[1:]:
        try:
            print(f"{name}: {relink(pathlib.Path(name))} functions")
        except (Failure, OSError) as failure:
            sys.exit(f"relink: {name}: {failure}")


if __name__ == "__main__":
    main()
