import type { Command } from "commander";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

interface Words {
  readonly command: string;
  readonly description: string;
  readonly flags: readonly string[];
}

function wordsOf(program: Command): readonly Words[] {
  return program.commands.map((command) => ({
    command: command.name(),
    description: command.description(),
    flags: [...command.options.map((option) => option.long ?? ""), "--help"].filter((flag) => flag !== ""),
  }));
}

/** zsh runs bash's completions by its own compatibility layer. */
function bash(name: string, words: readonly Words[]): string {
  const cases = words.map(({ command, flags }) => `    ${command}) words="${flags.join(" ")}" ;;`);
  return `_${name.replaceAll("-", "_")}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
    *) words="${words.map(({ command }) => command).join(" ")} --help --version" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -F _${name.replaceAll("-", "_")} ${name}
`;
}

function fish(name: string, words: readonly Words[]): string {
  const commands = words.map(
    ({ command, description }) =>
      `complete -c ${name} -n __fish_use_subcommand -f -a ${command} -d '${description.replaceAll("'", "\\'")}'`,
  );
  const flags = words.flatMap(({ command, flags: own }) =>
    own.map((flag) => `complete -c ${name} -n '__fish_seen_subcommand_from ${command}' -l ${flag.slice(2)}`),
  );
  return `${[...commands, ...flags].join("\n")}\n`;
}

const writers: Readonly<Record<Shell, (name: string, words: readonly Words[]) => string>> = {
  bash,
  zsh: (name, words) => `autoload -U +X bashcompinit && bashcompinit\n${bash(name, words)}`,
  fish,
};

/** The script that completes a program's commands and flags in a shell. */
export function completion(program: Command, shell: Shell): string {
  return writers[shell](program.name(), wordsOf(program));
}
