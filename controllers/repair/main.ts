/** The repair controller's program: one process on each node. */
import { CNI_NAME } from "../../cni/contract";
import { startProgram } from "../program";
import { runRepairController } from "./run";
import { readSettings } from "./settings";

startProgram({ logger: CNI_NAME, readSettings, run: runRepairController });
