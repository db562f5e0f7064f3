#!/usr/bin/env python3
"""Follows the recipes of ARCHITECTURE.md to the letter, in a copy of the project below target/recipes.

A block whose first line is `// PATH` is written to that file, the lines marked `+` of a diff are put between
those around them, the commands of a block of shell are run. Afterwards what was added must be listed and work.
What was built stays, also for the next time: dependencies are those that `cargo test` has built.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "target/recipes/crate"
BUILT = ROOT / "target/recipes/built"
LENT = ROOT / "target"
LEFT_OUT = {".git", "target"}


def copy():
    """Makes the copy what the project is; what is the same stays, so that it is not built anew."""
    wanted = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in LEFT_OUT]
        for name in files:
            source = Path(folder, name)
            target = COPY / source.relative_to(ROOT)
            wanted.add(target)
            if not target.exists() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
    for path in [p for p in COPY.rglob("*") if p.is_file() and p not in wanted]:
        path.unlink()


def lend():
    """Links what `cargo test` has built of the dependencies, which is the same here. Where cargo lays it out
    otherwise, it builds them."""
    for done in (LENT / "debug/.fingerprint").glob("*-*"):
        name, _, key = done.name.rpartition("-")
        if name == "crosswire" or (BUILT / "debug/.fingerprint" / done.name).exists():
            continue
        parts = [done, *(LENT / "debug/deps").glob(f"*-{key}.*"), *(LENT / "debug/build").glob(f"*-{key}")]
        for part in parts:
            subprocess.run(["cp", "-al", "--parents", part.relative_to(LENT), BUILT], cwd=LENT, check=True)


def recipes():
    """Name and blocks (language, lines) of each."""
    text = (ROOT / "ARCHITECTURE.md").read_text().split("\n## Recipes\n")[1].split("\n## ")[0]
    for part in text.split("\n### ")[1:]:
        name, body = part.split("\n", 1)
        blocks = re.findall(r"^   ```(\w+)\n(.*?)^   ```$", body, re.S | re.M)
        yield name, [(language, [line[3:] for line in block.splitlines()]) for language, block in blocks]


def write(lines):
    path = COPY / lines[0].removeprefix("// ")
    assert not path.exists(), f"{path} is there already"
    path.write_text("\n".join(lines[1:]) + "\n")


def patch(lines):
    path = COPY / lines[0].removeprefix("--- ")
    text = path.read_text()
    for hunk in "\n".join(lines[1:]).split("\n@@\n"):
        hunk = hunk.split("\n")
        assert all(line[:1] in " +" for line in hunk), hunk
        before = "".join(line[1:] + "\n" for line in hunk if not line.startswith("+"))
        after = "".join(line[1:] + "\n" for line in hunk)
        assert ("\n" + text).count("\n" + before) == 1, f"{path.relative_to(COPY)}: not there once:\n{before}"
        text = ("\n" + text).replace("\n" + before, "\n" + after)[1:]
    path.write_text(text)


def run(line):
    """Runs a command and gives what it prints."""
    print("+", line, flush=True)
    environment = os.environ | {"CARGO_TARGET_DIR": str(BUILT), "CARGO_INCREMENTAL": "1"}
    o = subprocess.run(["bash", "-c", line], cwd=COPY, env=environment, capture_output=True, text=True)
    # Findings are no failure.
    allowed = {0, 1} if line.startswith("cargo run") else {0}
    ran = "cargo test" not in line or any(int(n) > 0 for n in re.findall(r"test result: ok\. (\d+) passed", o.stdout))
    assert o.returncode in allowed and ran, f"{line}: exit status {o.returncode}\n{o.stdout}\n{o.stderr}"
    warnings = [l for l in o.stderr.splitlines() if l.startswith("warning: ")]
    assert not warnings, o.stderr
    return o.stdout


def main():
    copy()
    BUILT.mkdir(parents=True, exist_ok=True)
    lend()
    commands = []
    for name, blocks in recipes():
        print(f"-- {name}", flush=True)
        for language, lines in blocks:
            match language:
                case "rust":
                    write(lines)
                case "diff":
                    patch(lines)
                case "sh":
                    commands.extend(line for line in lines if line not in commands)
                case _:
                    sys.exit(f"a block of {language} is nothing that can be followed")
    # All three at once: each build takes long.
    printed = {line: run(line) for line in commands}

    assert "bars between its parts" in printed["cargo run -- formats piped"]
    assert "must sign in first" in printed["cargo run -- rules protocol/handshake-refused"]
    brief = next(out for line, out in printed.items() if line.endswith("--format brief"))
    assert "crossed/id-collision: entity_update (id 3) received the reply of journal_append (id 3)" in brief, brief
    program = BUILT / "debug/crosswire"

    def crosswire(*arguments):
        return subprocess.run([program, *arguments], cwd=COPY, capture_output=True, text=True).stdout

    assert re.search(r"^\s*piped\b", crosswire("formats"), re.M)
    assert re.search(r"^\s*protocol/handshake-refused\b", crosswire("rules"), re.M)
    log = COPY / "../gate.log"
    log.write_text("".join(f"2026-11-29T19:38:{s}+00:00|POST|/mcp|200|0.031\n" for s in range(10, 40)))
    told = json.loads(crosswire("analyze", str(log), "--format", "json"))["inputs"][0]
    assert (told["format"], told["records"], told["problems"]) == ("piped", 30, []), told
    # What was put in now stands between the lines that the recipes name.
    run("cargo test --test tidy --test architecture --test completions -- --skip recipes_say_where")
    print("the recipes hold: a format, a rule and an output were added")


if __name__ == "__main__":
    main()
