/** The validator's program, which runs once in a pod's network namespace. */
import { CNI_NAME } from "../cni/contract";
import { startProgram } from "./program";
import { readSettings, validate } from "./validate";

startProgram({ logger: CNI_NAME, memoryMiB: 32, readSettings, run: validate });
