/** The program of CrowdProcess: a crowd, until the parent disconnects. */
import { Crowd } from "./crowd";

const { port, sent, size, isResetting } = JSON.parse(process.argv[2] ?? "");
const crowd = new Crowd(port, sent, { size, isResetting });
process.once("disconnect", () => process.exit());
void crowd.grown(size).then(() => process.send?.("grown"));
