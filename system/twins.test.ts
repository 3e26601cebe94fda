/** Each module of Node's and its twin of the engine have the same names, of the same types. */
import * as crypto from "./crypto";
import * as cryptoTwin from "./crypto.engine";
import * as net from "./net";
import * as netTwin from "./net.engine";

const twins: readonly (readonly [name: string, module: object, twin: object])[] = [
  ["crypto", crypto, cryptoTwin satisfies typeof crypto],
  ["net", net, netTwin satisfies typeof net],
];

test.each(twins)("%s", (_, module, twin) => {
  expect(Object.keys(twin).sort()).toEqual(Object.keys(module).sort());
});
