import { requireDigest, SOURCES } from "./engine";

describe("the C sources", () => {
  it("are compiled as they were looked at, and no others", () => {
    expect(() => requireDigest(SOURCES.digest)).not.toThrow();
    expect(() => requireDigest("0".repeat(64))).toThrow(
      `the C sources in @scriptc/runtime have changed (sha256 ${"0".repeat(64)}, not ${SOURCES.digest}): compare them`,
    );
  });
});
