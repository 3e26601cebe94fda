/** The modules that replace Node's in executables have the same types. */
import type * as child from "./child";
import type * as engineChild from "./child.engine";
import type * as crypto from "./crypto";
import type * as engineCrypto from "./crypto.engine";
import type * as exchange from "./exchange";
import type * as engineExchange from "./exchange.engine";
import type * as net from "./net";
import type * as engineNet from "./net.engine";
import type * as opened from "./opened";
import type * as engineOpened from "./opened.engine";
import type * as program from "./program";
import type * as engineProgram from "./program.engine";

type Twin<Engine extends Node, Node> = [Engine, Node];

it("each twin has what the other has", () => {
  const checked: readonly [
    Twin<typeof engineChild, typeof child>?,
    Twin<typeof engineCrypto, typeof crypto>?,
    Twin<typeof engineExchange, typeof exchange>?,
    Twin<typeof engineNet, typeof net>?,
    Twin<typeof engineOpened, typeof opened>?,
    Twin<typeof engineProgram, typeof program>?,
  ] = [];
  expect(checked).toEqual([]);
});
