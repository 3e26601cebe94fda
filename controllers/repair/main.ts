/** The repair controller's program: one process on each node. */
import { CNI_NAME } from "../../cni/contract";
import { startProgram } from "../program";
import { runRepairController } from "./run";
import { readSettings } from "./settings";

// An object has at most 8 MiB; parsed hostile objects need ten times as much.
startProgram({ logger: CNI_NAME, memoryMiB: 128, readSettings, run: runRepairController });
