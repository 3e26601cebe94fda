import { get } from "node:http";

const DEADLINE_MS = 2_000;

/** Asks the installer of the same pod whether a pod that is started now will be chained. */
export function askInstaller(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: DEADLINE_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
    request.on("close", () => resolve(false));
  });
}
