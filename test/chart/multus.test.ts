import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { LinkerdMultusProps } from "../../constructs";
import { constructed, linkerdMultus, rendered } from "./charts";
import {
  byName,
  documents,
  helmSuite,
  kustomized,
  kustomizeSuite,
  type Rendered,
  refusal,
  root,
  run,
  withValues,
} from "./helm";

const NAMESPACE = "linkerd-multus";

const template = (...flags: readonly string[]) => rendered(linkerdMultus, NAMESPACE, ...flags);
const expected = (props: LinkerdMultusProps = {}) => byName(constructed(linkerdMultus, props, NAMESPACE));
const podTemplate = (manifests: readonly Rendered[]) =>
  (manifests.find(({ kind }) => kind === "Deployment") as unknown as { spec: { template: object } }).spec.template;

helmSuite("dist/charts/linkerd-multus with the real helm", () => {
  test("lints strictly", () => {
    expect(run("lint", "--strict", linkerdMultus.path)).toContain("0 chart(s) failed");
  });

  test("numbers and booleans that are set as text arrive with their types", () => {
    const set = ["replicaCount=3", "controller.leaderElection=false", "service.webhookPort=1443", "runAsUser=-1"];
    const rendered = template(...set.flatMap((flag) => ["--set-string", flag]));
    const controller = { leaderElection: false };
    expect(byName(rendered)).toEqual(
      expected({ replicaCount: 3, controller, service: { webhookPort: 1443 }, runAsUser: -1 }),
    );
  });

  test.each([
    "webhook: null",
    "webhook: {namespaceSelector: null}",
    "webhook: {namespaceSelector: {matchExpressions: null}}",
  ])("with %s the webhook covers none of the system's namespaces", (text) => {
    withValues(parse(text), (path) => {
      const rendered = template("--values", path).filter(({ kind }) => kind === "MutatingWebhookConfiguration");
      const { webhooks } = rendered[0] as unknown as { webhooks: { namespaceSelector: object }[] };
      expect(webhooks).toHaveLength(2);
      for (const { namespaceSelector } of webhooks) {
        expect(JSON.stringify(namespaceSelector)).toContain('["kube-system","kube-public","kube-node-lease",');
      }
    });
  });

  /** Bad values, and what helm's message says about them. */
  const refused: readonly (readonly [string, string])[] = [
    ["replicaCount=-1", "at '/replicaCount': minimum: got -1, want 0"],
    ["webhook.caBundle=x", "at '/webhook': additional properties 'caBundle' not allowed"],
    ["topologySpreadConstraints[0].maxSkew=1", "missing property 'topologyKey'"],
  ];

  test.each(refused)("refuses %s and names the value", (flag, message) => {
    expect(refusal("template", "multus", linkerdMultus.path, "--set", flag)).toContain(message);
  });

  test("pods are replaced when the operator is told something else, and only then", () => {
    const before = podTemplate(template());
    expect(podTemplate(template("--set", "controller.requestBurst=9"))).not.toEqual(before);
    expect(podTemplate(template("--set", "webhook.failurePolicy=Ignore,replicaCount=5"))).toEqual(before);
  });
});

kustomizeSuite("dist/manifests with kustomize", () => {
  const manifests = join(root, "dist", "manifests");
  const built = (...path: string[]) => byName(kustomized(join(manifests, ...path)));
  const file = (name: string) => byName(documents(readFileSync(join(manifests, name), "utf8")));

  test("each chart can be applied without the other", () => {
    expect(built()).toEqual(file("linkerd-cni.yaml"));
    expect(built("multus")).toEqual(file("linkerd-multus.yaml"));
    const { [`Namespace/${NAMESPACE}`]: namespace, ...others } = built("multus");
    expect(namespace).toBeDefined();
    expect(others).toEqual(expected());
  });
});
