#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a documentation page and compares what they print with what the page shows.

    tests/docs/run_page.py PROGRAM PAGE WORK_DIR [--update]

Blocks fenced as ```console hold commands, each on a line that starts with "$ " (continued with a backslash at its end), and
under each what it prints. `chokepoint` is the program; `examples` lies in the working directory; a page's blocks run one
after another in one empty folder. "[exit code N]" stands under a command that does not exit 0. Blocks fenced as ```file NAME
are written to that file. --update rewrites what is printed.

Figures in prose: a quantity with its unit (15.6 s, 34 %, 8 GB/s) has to stand in a command, a file or an output of the page,
or on a line with a link to where it comes from, or between "<!-- held by TEST -->" and "<!-- end -->" where another test
checks it. So no figure outlives the model that gave it.
"""
import os
import re
import shutil
import subprocess
import sys

QUANTITY = re.compile(
    r"(?<![\w.])\d[\d,]*(?:\.\d+)?\s?(?:s|ms|us|µs|%|GiB|GB|GB/s|Gb/s|TB/s|TFLOP/s|tokens/s|USD|days|hours|x)(?![\w/])")


def blocks(lines):
    """(language, first line, line after the last) of every fenced block; lines exclude the fences."""
    found, start, language = [], None, None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start, language = i + 1, line[3:].strip()
        else:
            found.append((language, start, i))
            start = None
    if start is not None:
        raise SystemExit(f"a block that starts at line {start} never ends")
    return found


def commands(lines):
    """[(command lines, output lines)] of one console block."""
    out, i = [], 0
    while i < len(lines):
        if not lines[i].startswith("$ "):
            raise SystemExit(f"expected '$ command', found: {lines[i]!r}")
        command = [lines[i]]
        while command[-1].endswith("\\") and i + 1 < len(lines):
            i += 1
            command.append(lines[i])
        i += 1
        output = []
        while i < len(lines) and not lines[i].startswith("$ "):
            output.append(lines[i])
            i += 1
        out.append((command, output))
    return out


def run(command, folder, program_folder):
    text = "\n".join(command)[2:]
    environment = {"PATH": program_folder + ":/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": folder, "TERM": "dumb",
                   "COLUMNS": "100"}
    for extra in ("PYTHONPATH",):
        if extra in os.environ:
            environment[extra] = os.environ[extra]
    done = subprocess.run(["bash", "-c", text], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    printed = done.stdout.decode("utf-8").rstrip("\n")
    lines = printed.split("\n") if printed else []
    lines = [line.rstrip() for line in lines]
    if done.returncode != 0:
        lines.append(f"[exit code {done.returncode}]")
    return lines


def unfounded(lines, spans, known):
    """Prose figures that no command of the page prints and no link stands beside."""
    inside = set()
    for _, start, end in spans:
        inside.update(range(start - 1, end + 1))
    squeezed = re.sub(r"[\s]", "", known)
    held = False
    for i, line in enumerate(lines):
        held = held and "<!-- end -->" not in line or "<!-- held by" in line
        if held or i in inside or "](" in line or line.lstrip().startswith("<!--"):
            continue
        for quantity in QUANTITY.findall(line):
            if re.sub(r"\s", "", quantity) not in squeezed:
                yield f"line {i + 1}: '{quantity}' stands in no command or output of this page, and no link is beside it"


def main():
    program, page, work = sys.argv[1:4]
    update = "--update" in sys.argv[4:]
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    shutil.rmtree(work, ignore_errors=True)
    folder = os.path.join(work, "page")
    bin_folder = os.path.join(work, "bin")
    os.makedirs(folder)
    os.makedirs(bin_folder)
    os.symlink(os.path.abspath(program), os.path.join(bin_folder, "chokepoint"))
    shutil.copytree(os.path.join(root, "examples"), os.path.join(folder, "examples"))
    with open(page, encoding="utf-8") as file:
        lines = file.read().split("\n")
    spans = blocks(lines)
    known, failed, result, at = "", False, [], 0
    for language, start, end in spans:
        body = lines[start:end]
        known += "\n".join(body) + "\n"
        result += lines[at:start]
        at = end
        if language.startswith("file "):
            with open(os.path.join(folder, language[5:].strip()), "w", encoding="utf-8") as file:
                file.write("\n".join(body) + "\n")
        if language != "console" and not (language == "python-console" and "PYTHONPATH" in os.environ):
            result += body
            continue
        for command, expected in commands(body):
            printed = run(command, folder, bin_folder)
            result += command + printed
            if printed == expected or update:
                continue
            failed = True
            print(f"{page}: {command[0]}")
            for line in expected:
                if line not in printed:
                    print(f"  - {line}")
            for line in printed:
                if line not in expected:
                    print(f"  + {line}")
    result += lines[at:]
    if update and result != lines:
        with open(page, "w", encoding="utf-8") as file:
            file.write("\n".join(result))
    problems = list(unfounded(result, blocks(result), "\n".join("\n".join(result[s:e]) for _, s, e in blocks(result))))
    for problem in problems:
        print(f"{page}: {problem}")
    if failed:
        print("If the new output is right: cmake --build BUILD_DIR --target update-docs, and mend the figures in the text.")
    return 1 if failed or problems else 0


sys.exit(main())
