"""Sphinx directive ``command-reference``: the help of each command of relvec, as options that can be linked to.

It runs ``relvec help COMMAND`` and reads the text that clap writes: sections begin at the left margin and end with a
colon; an option begins with a hyphen within the first eight columns; the text of an option is indented by ten columns.
"""

import re
import subprocess
import sys

from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HEADING = re.compile(r"^(\S.*):$")
OPTION = re.compile(r"^ {2,6}(-\S.*)$")
ARGUMENT = re.compile(r"^  (<\S+>|\[\S+\])(\.\.\.)?$")
COMMAND = re.compile(r"^  ([a-z]+) +(\S.*)$")
TEXT_INDENT = 10
#: Options that all commands have.
COMMON = ("-h, --help", "--color", "-q, --quiet", "-v, --verbose")


def help_of(*words: str) -> str:
    """What ``relvec help WORDS`` prints, 100 columns wide or less."""
    run = subprocess.run([sys.executable, "-m", "relvec", "help", *words], capture_output=True, text=True, check=True)
    return run.stdout


def commands() -> list[str]:
    """Names of the commands, in the order of the help; without ``help`` itself."""
    listed = help_of().split("Commands:\n", 1)[1].split("\n\n", 1)[0]
    names = [found[1] for line in listed.splitlines() if (found := COMMAND.match(line))]
    return [name for name in names if name != "help"]


def escaped(text: str) -> str:
    """Plain text as reStructuredText; what stands between backquotes is literal."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts = ["`".join(parts)]
    plain = [part if i % 2 else re.sub(r"([\\`*_|])", r"\\\1", part) for i, part in enumerate(parts)]
    return "``".join(plain)


def lines_of(command: str, text: str) -> list[str]:
    """ReStructuredText of the help of a command."""
    introduction, rest = text.split("\nUsage: ", 1)
    usage, rest = rest.split("\n\n", 1)
    title = f"relvec {command}"
    lines = [title, "-" * len(title), "", f".. program:: {title}", ""]
    lines += [escaped(line) for line in introduction.splitlines()]
    lines += ["", ".. code-block:: text", "", *(f"    {line.strip()}" for line in usage.splitlines()), ""]
    example = common = False
    heading = []
    for line in rest.splitlines():
        if found := HEADING.match(line):
            example, common = found[1].startswith("Example"), False
            heading = ["", f".. rubric:: {found[1]}", ""]
            lines += ["", ".. code-block:: sh", ""] if example else []
        elif example and lines[-1].startswith("    relvec ") and not line.startswith(("  relvec ", "  # ")):
            # The help breaks long lines; a reader copies them whole.
            lines[-1] += f" {line.strip()}".rstrip()
        elif example:
            lines += [f"    {line.strip()}"]
        elif found := OPTION.match(line):
            # The page names the options of all commands once.
            common = found[1].startswith(COMMON)
            if not common:
                lines += [*heading, "", f".. option:: {found[1]}", ""]
                heading = []
        elif common:
            continue
        elif found := ARGUMENT.match(line):
            lines += [*heading, "", f".. option:: {found[1]}", ""]
            heading = []
        else:
            content = line[TEXT_INDENT:]
            # A list needs an empty line in front, a list of values one for each line that begins with a hyphen.
            if content.startswith("- ") and not lines[-1].lstrip().startswith("- "):
                lines += [""]
            lines += [f"    {escaped(content)}" if content else ""]
    return lines


class CommandReference(SphinxDirective):
    """Sections for all commands."""

    def run(self):
        """Parse the help of each command as part of the page."""
        lines = [line for command in commands() for line in [*lines_of(command, help_of(command)), ""]]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}
