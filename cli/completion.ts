import type { Command, Option } from "commander";
import { values } from "../constructs/values";
import { type Field, fieldsOf } from "../helm/fields";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** The first word of a command line that the shells ask; kubectl asks plugins in the same way. */
export const COMPLETE = "__complete";

/** How a shell continues after a candidate, as kubectl's directive numbers. */
const Directive = { files: 0, nothing: 4, noSpace: 6 } as const;

/** A word that may complete a command line. */
interface Candidates {
  readonly words: readonly string[];
  readonly directive: number;
}

const NOTHING: Candidates = { words: [], directive: Directive.nothing };
const FILES: Candidates = { words: [], directive: Directive.files };
const only = (words: readonly string[], directive: number = Directive.nothing): Candidates => ({ words, directive });

const nameOf = ({ path }: Field): string => path.join(".");

/** The last assignment of `--set a=1,nri.enabled=t`: the value's name, or what the value may be. */
function assignment(text: string): Candidates {
  const begin = text.lastIndexOf(",") + 1;
  const before = text.slice(0, begin);
  const fields = fieldsOf(values);
  const [name = "", given] = text.slice(begin).split("=");
  if (given === undefined)
    return only(
      fields.map((field) => `${before}${nameOf(field)}=`),
      Directive.noSpace,
    );
  const field = fields.find((each) => nameOf(each) === name);
  if (field === undefined) return NOTHING;
  const choices = field.type === "bool" ? ["true", "false"] : field.choices;
  return only(choices.map((choice) => `${before}${name}=${choice}`));
}

function suggested(option: Option, text: string): Candidates {
  if (option.argChoices !== undefined) return only(option.argChoices);
  if (option.long === "--set" || option.long === "--set-string") return assignment(text);
  return /<(file|files|name=file)>/.test(option.flags) ? FILES : NOTHING;
}

function argumentOf(command: Command): Candidates {
  if (command.name() === "completion") return only(SHELLS);
  return command.name() === "values" ? only(fieldsOf(values).map(nameOf)) : NOTHING;
}

function candidates(program: Command, given: readonly string[]): Candidates {
  const current = given.at(-1) ?? "";
  const before = given.slice(0, -1);
  const command = program.commands.find((each) => each.name() === before[0]);
  if (command === undefined) {
    const commands = program.createHelp().visibleCommands(program);
    return only([...commands.map((each) => each.name()), "--help", "--version"]);
  }
  const [, flag = "", text] = /^(--[\w-]+)=(.*)$/s.exec(current) ?? [];
  const options = program.createHelp().visibleOptions(command);
  const named = options.find(({ long }) => long === flag);
  if (named !== undefined && text !== undefined) {
    const { words, directive } = suggested(named, text);
    return only(
      words.map((word) => `${flag}=${word}`),
      directive,
    );
  }
  const previous = options.find(({ long, short }) => [long, short].includes(before.at(-1)));
  if (previous?.required === true) return suggested(previous, current);
  if (current.startsWith("-")) return only(options.flatMap(({ long }) => long ?? []));
  const argument = argumentOf(command);
  return argument.words.length > 0 ? argument : only(options.flatMap(({ long }) => long ?? []));
}

/**
 * Completions of the last word of a command line, one candidate per line, and a last line `:NUMBER` with the directive
 * for the shell: the form that kubectl expects from plugins.
 */
export function completed(program: Command, given: readonly string[]): string {
  // bash treats "=" as a separate word.
  const joined = given.join("\0").replace(/\0=(\0|$)/g, "=");
  const words = joined.split("\0");
  const current = words.at(-1) ?? "";
  const { words: all, directive } = candidates(program, words);
  const fitting = all.filter((word) => word.startsWith(current));
  const isSplit = words.length !== given.length && current.includes("=");
  const shown = isSplit ? fitting.map((word) => word.slice(current.lastIndexOf("=") + 1)) : fitting;
  return [...shown, `:${directive}`, ""].join("\n");
}

const functionOf = (name: string): string => `_${name.replaceAll("-", "_")}`;

function bash(name: string): string {
  const own = functionOf(name);
  return `${own}() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :${Directive.files}) ;;
      :${Directive.noSpace}) compopt -o nospace +o default 2>/dev/null ;;
      :*) compopt +o default 2>/dev/null ;;
      *) COMPREPLY+=("$line") ;;
    esac
  done < <(${name} ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F ${own} ${name}
`;
}

/** As a file in fpath it completes when it is called; if it is sourced, it registers the completion. */
function zsh(name: string): string {
  const own = functionOf(name);
  return `#compdef ${name}
${own}() {
  local -a lines
  lines=("\${(@f)$(${name} ${COMPLETE} "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  local directive=$lines[-1]
  lines[-1]=()
  case $directive in
    :${Directive.files})
      [[ $PREFIX == --*=* ]] && compset -P '*='
      _files ;;
    :${Directive.noSpace}) compadd -S '' -a lines ;;
    *) compadd -a lines ;;
  esac
}
if [[ $funcstack[1] == _${name} ]]; then
  ${own} "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef ${own} ${name}
fi
`;
}

function fish(name: string): string {
  const own = functionOf(name);
  return `function ${own}
  set -l current (commandline -ct)
  set -l lines (${name} ${COMPLETE} (commandline -opc)[2..-1] "$current" 2>/dev/null)
  if test "$lines[-1]" = :${Directive.files}
    set -l flag (string match -r -- '^--[\\w-]+=' "$current")
    for path in (__fish_complete_path (string replace -- "$flag" "" "$current"))
      echo "$flag$path"
    end
  else
    string match -v -r '^:' -- $lines
  end
end
complete -c ${name} -f -a '(${own})'
`;
}

/** The script that makes a shell ask a program for completions. */
export const completion: Readonly<Record<Shell, (program: string) => string>> = { bash, zsh, fish };
