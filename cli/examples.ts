import type { Command } from "commander";

/** Example command lines for help, by command; each without the program's name, with a description. */
const EXAMPLES: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  "install-cni": [
    ["install-cni | kubectl apply -f -", "with the defaults"],
    ["install-cni --platform k3s -f values.yaml | kubectl apply -f -", "k3s, with values of a file"],
    ["install-cni --set nri.enabled=true", "look at the manifests first"],
  ],
  "uninstall-cni": [["uninstall-cni | kubectl delete --ignore-not-found -f -", "all but the namespace"]],
  check: [
    ["check --pre", "before an installation"],
    ["check --wait 2m", "after it, until all is well"],
    ["check -o json", "for a program"],
  ],
  explain: [
    ["explain shop/cart-7d9f", "one pod"],
    ["explain deploy/web -n shop --rules", "the pods of a Deployment, with the rules"],
    ["explain -f pod.yaml", "a pod before it is created"],
  ],
  report: [
    ["report", "into the working directory"],
    ["report -o - | tar tzf -", "list its files"],
  ],
  values: [
    ["values", "all"],
    ["values nri", "those of a group"],
    ["values -o json", "for a program"],
  ],
  version: [["version --client --short", "the number alone"]],
  completion: [
    ["completion bash > /etc/bash_completion.d/l5d-cni", "for all users"],
    ["completion zsh > ~/.zfunc/_l5d-cni", "where ~/.zfunc is in fpath"],
    ["completion fish | source", "in this fish"],
  ],
};

/** Adds the examples to the help of each command. */
export function withExamples(program: Command): Command {
  for (const command of program.commands) {
    const examples = EXAMPLES[command.name()] ?? [];
    const lines = examples.map(([line, what]) => `  # ${what}\n  ${program.name()} ${line}`);
    if (lines.length > 0) command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
  }
  return program;
}
