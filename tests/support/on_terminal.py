"""on_terminal.py FILE COMMAND...: runs it with a pseudo-terminal as its standard output and error, keeps the bytes in
FILE, ends with its status. on_terminal.py --seen FILE PATTERN: fails where a line that is still to be seen at the end
matches, after carriage returns and "erase to the end of the line" did their work."""
import os, pty, re, sys

if sys.argv[1] == "--seen":
    with open(sys.argv[2], "rb") as f:
        text = f.read().decode(errors="replace")
    for line in text.replace("\r\n", "\n").split("\n"):
        seen = ""
        for part in line.split("\r"):  # each begins at the left, over what stood there
            kept, *rest = part.split("\033[K")
            seen = kept + (seen[len(kept):] if not rest else "".join(rest))
        if re.search(sys.argv[3], seen):
            sys.exit(f"still to be seen: {seen}")
    sys.exit(0)

with open(sys.argv[1], "wb", buffering=0) as out:  # a script may look at it meanwhile

    def keep(fd):
        data = os.read(fd, 65536)
        out.write(data)
        return data

    stdout = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # pty.spawn copies what it reads to its own standard output
    status = pty.spawn(sys.argv[2:], keep, lambda fd: b"")
    os.dup2(stdout, 1)
sys.exit(os.waitstatus_to_exitcode(status))
