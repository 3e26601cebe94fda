/** The CNI plugin's executable: one call, one answer. */
import { CALL_LOG_NAME } from "../cni/contract";
import { appendLine } from "../host/call-log";
import { writeAll } from "../host/files";
import type { Host } from "../host/port";
import { dispatch } from "./dispatch";

/** The functions of the executable's C part. */
declare const host: Host;

const STDOUT = 1;
const STDERR = 2;

const { stdout, stderr, status, record, runDir } = dispatch(host);
writeAll(host, STDERR, stderr);
const isWritten = writeAll(host, STDOUT, stdout === "" ? "" : `${stdout}\n`);
if (record !== undefined) appendLine(host, `${runDir}/${CALL_LOG_NAME}`, record);
host.exit(isWritten ? status : 1);
