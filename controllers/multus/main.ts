/** The Multus operator's program. */
import { MULTUS_NAME } from "../../cni/contract";
import { startProgram } from "../program";
import { MultusOperator } from "./operator";
import { readSettings } from "./settings";

startProgram({ logger: MULTUS_NAME, readSettings, run: (deps) => new MultusOperator(deps).run() });
