/** The program of CrowdProcess: a crowd, until the parent disconnects. */
import { Crowd } from "./crowd";

const { port, sent, ...options } = JSON.parse(process.argv[2] ?? "");
const crowd = new Crowd(port, sent, options);
process.once("disconnect", () => process.exit());
void crowd.grown(options.size).then(() => process.send?.("grown"));
