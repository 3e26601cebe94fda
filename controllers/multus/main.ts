/** The Multus operator's program. */
import { MULTUS_NAME } from "../../cni/contract";
import { startProgram } from "../program";
import { MultusOperator } from "./operator";
import { readSettings } from "./settings";

// Namespaces and definitions of a large cluster, and reviews beside them.
startProgram({ logger: MULTUS_NAME, memoryMiB: 256, readSettings, run: (deps) => new MultusOperator(deps).run() });
