/** How linkerd's own plugin handles previous results. LINKERD_CNI_PEER names its executable. */
import { previousResults } from "../../cni/previous-results.testing";
import { environment } from "../../plugin/protocol-cases.testing";
import { Node, namespacesMissing } from "../support/netns";
import { suite } from "../support/requirements";

const peer = process.env["LINKERD_CNI_PEER"];
const missing = namespacesMissing() ?? (peer === undefined ? "LINKERD_CNI_PEER to name linkerd's plugin" : undefined);

suite("previous results, by linkerd's plugin", missing, () => {
  let node: Node;
  let netns: string;

  beforeAll(async () => {
    node = await Node.open();
    netns = await node.pod();
  });
  afterAll(() => node.close());

  /** An ADD of no pod: only the previous result counts. */
  async function pass(version: string, text: string): Promise<string | undefined> {
    const { CNI_ARGS: _, ...env } = { ...environment, CNI_NETNS: netns };
    const input = `{"cniVersion":"${version}","name":"pods","type":"linkerd-cni","prevResult":${text}}`;
    const { status, stdout } = await node.run(peer ?? "", [], { input, env });
    return status === 0 ? stdout : undefined;
  }

  it.each(previousResults)("$verdict: of version $version, $text", async ({ version, text, verdict }) => {
    const passed = await pass(version, text);
    const again = passed === undefined ? undefined : await pass(version, passed);
    expect(again === undefined ? "refuses" : "takes").toBe(verdict === "takes" ? "takes" : "refuses");
  });
});
