import { Bucket } from "./bucket";

describe("a bucket", () => {
  it("lets a burst through, then one at a time", () => {
    const bucket = new Bucket({ perSecond: 2, burst: 3 });
    for (let index = 0; index < 3; index++) {
      expect(bucket.wait(0)).toBe(0);
      bucket.take(0);
    }
    expect(bucket.wait(0)).toBe(500);
    expect(bucket.wait(400)).toBe(100);
    expect(bucket.wait(500)).toBe(0);
    bucket.take(500);
    expect(bucket.wait(500)).toBe(500);
  });

  it("never holds more than a burst", () => {
    const bucket = new Bucket({ perSecond: 1, burst: 2 });
    expect(bucket.wait(0)).toBe(0);
    for (let index = 0; index < 2; index++) bucket.take(1_000_000);
    expect(bucket.wait(1_000_000)).toBe(1_000);
  });
});
