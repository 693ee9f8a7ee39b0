"""Types lines into a shell on a pseudo-terminal, as a person does, with TAB for completion.

    terminal.py OUTPUT SHELL [ARGUMENT ...] < LINES

Each line is typed when the one before it has ended: it gets ` >>OUTPUT; echo END >>OUTPUT` at its end.
The prompt of the shell must have READY in it. Prints what was on the terminal; exits 1 after 150 s.
"""
import os
import pty
import select
import sys
import time


def main(output, shell):
    lines = sys.stdin.buffer.read().splitlines()
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(shell[0], shell)
    screen = bytearray()
    limit = time.monotonic() + 150

    def wait(condition):
        while not condition():
            if time.monotonic() > limit:
                return False
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    screen.extend(os.read(terminal, 65536))
                except OSError:
                    return condition()
        return True

    def ended():
        try:
            with open(output, "rb") as file:
                return file.read().splitlines().count(b"END")
        except FileNotFoundError:
            return 0

    isWell = wait(lambda: b"READY" in screen)
    for number, line in enumerate(lines, 1):
        if not isWell:
            break
        ending = b" >>%s; echo END >>%s\r" % (output.encode(), output.encode())
        os.write(terminal, line + ending)
        isWell = wait(lambda: ended() >= number)
    os.close(terminal)
    os.waitpid(child, 0)
    sys.stdout.buffer.write(bytes(screen))
    return 0 if isWell else 1


sys.exit(main(sys.argv[1], sys.argv[2:]))
