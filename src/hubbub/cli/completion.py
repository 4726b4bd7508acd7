"""`hubbub completion`: scripts that complete commands in a shell, written from the parsers of all commands.

Tested in tests/cli/test_completion.py.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rich.console import Console

#: Arguments whose values are names of files.
_FILES = frozenset({"PATH", "FILE", "FOLDER"})


@dataclass(frozen=True)
class CommandWords:
    """The words that can follow a command: its subcommands, options and choices."""

    summary: str = ""
    subcommands: Mapping[str, "CommandWords"] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    takes_file: bool = False

    def words(self) -> list[str]:
        """Return all words."""
        return [*self.subcommands, *self.choices, *self.options]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  source <(hubbub completion bash)                  in ~/.bashrc
  source <(hubbub completion zsh)                   in ~/.zshrc, after compinit
  hubbub completion fish | source                   in ~/.config/fish/config.fish"""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to write for")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from hubbub.cli import build_parser

    tree = read(build_parser())
    written = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell](tree)
    console.file.write(written)
    return 0


def read(parser: argparse.ArgumentParser, summary: str = "") -> CommandWords:
    """Read the words of a parser and of its subcommands."""
    subcommands: dict[str, CommandWords] = {}
    options: dict[str, str] = {}
    choices: list[str] = []
    takes_file = False
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            told = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
            subcommands |= {name: read(part, told.get(name, "")) for name, part in action.choices.items()}
        elif action.option_strings:
            if action.help != argparse.SUPPRESS:
                options |= dict.fromkeys(action.option_strings, (action.help or "").split(";")[0].replace("%%", "%"))
            takes_file = takes_file or action.metavar in _FILES
        elif action.choices:
            choices += map(str, action.choices)
        else:
            takes_file = takes_file or action.metavar in _FILES
    return CommandWords(summary, subcommands, options, tuple(choices), takes_file)


def paths(tree: CommandWords, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], CommandWords]]:
    """Yield each command with the words before it."""
    yield path, tree
    for name, part in tree.subcommands.items():
        yield from paths(part, (*path, name))


def bash(tree: CommandWords) -> str:
    """Write the script for bash: the longest known path of words decides what can follow."""
    lines = ["# bash completion of hubbub; written by `hubbub completion bash`", "_hubbub() {"]
    lines += ['  local current="${COMP_WORDS[COMP_CWORD]}" path="" word next words=""', "  COMPREPLY=()"]
    lines += ['  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do', '    case "$path $word" in']
    known = ["|".join(_quoted(f"{_joined(path[:-1])} {path[-1]}") for path, _ in paths(tree) if path)]
    lines += [f'      {known[0]}) path="${{path:+$path }}$word" ;;', "    esac", "  done", '  case "$path" in']
    for path, part in paths(tree):
        lines.append(f"    {_quoted(_joined(path))}) words={_quoted(' '.join(part.words()))} ;;")
    lines += ["  esac", '  COMPREPLY=($(compgen -W "$words" -- "$current"))']
    lines += ["}", "complete -o default -F _hubbub hubbub", ""]
    return "\n".join(lines)


def zsh(tree: CommandWords) -> str:
    """Write the script for zsh: the same, with what each word means."""
    lines = ["#compdef hubbub", "# zsh completion of hubbub; written by `hubbub completion zsh`", "_hubbub() {"]
    lines += ['  local where="" word', "  local -a described", '  for word in "${words[@]:1:$((CURRENT-2))}"; do']
    known = "|".join(_quoted(f"{_joined(path[:-1])} {path[-1]}") for path, _ in paths(tree) if path)
    lines += ['    case "$where $word" in', f'      {known}) where="${{where:+$where }}$word" ;;', "    esac", "  done"]
    lines.append('  case "$where" in')
    for path, part in paths(tree):
        told = {name: each.summary for name, each in part.subcommands.items()} | dict.fromkeys(part.choices, "")
        entries = [_entry(name, text) for name, text in (told | dict(part.options)).items()]
        lines.append(f"    {_quoted(_joined(path))}) described=({' '.join(entries)}) ;;")
    lines += ["  esac", "  _describe 'hubbub' described || _files", "}", "compdef _hubbub hubbub", ""]
    return "\n".join(lines)


def fish(tree: CommandWords) -> str:
    """Write the script for fish: one line for each word."""
    lines = ["# fish completion of hubbub; written by `hubbub completion fish`", "complete -c hubbub -f"]
    for path, part in paths(tree):
        seen = [f"__fish_seen_subcommand_from {path[-1]}"] if path else ["__fish_use_subcommand"]
        if len(path) > 1:
            seen = [f"__fish_seen_subcommand_from {word}" for word in path]
        when = _quoted("; and ".join(seen))
        for name, each in part.subcommands.items():
            lines.append(f"complete -c hubbub -n {when} -a {name} -d {_quoted(each.summary)}")
        for choice in part.choices:
            lines.append(f"complete -c hubbub -n {when} -a {_quoted(choice)}")
        for name, text in part.options.items():
            kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            lines.append(f"complete -c hubbub -n {when} {kind} -d {_quoted(text)}")
        if part.takes_file:
            lines.append(f"complete -c hubbub -n {when} -F")
    return "\n".join([*lines, ""])


def _joined(path: tuple[str, ...]) -> str:
    return " ".join(path)


def _quoted(text: str) -> str:
    """Quote a text for all three shells: single quotes, without any inside."""
    return "'" + text.replace("'", "’").replace("\\", "").replace("\n", " ") + "'"


def _entry(name: str, text: str) -> str:
    return _quoted(f"{name.replace(':', chr(92) + ':')}:{text}")
