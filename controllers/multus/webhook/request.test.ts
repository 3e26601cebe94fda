import { ReviewLimit } from "./request";

const KIB = 1024;

/** Begins reviews of so many bytes that stay under way until they are ended. */
function begin(limit: ReviewLimit, count: number, bytes: number) {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const reviews = Array.from({ length: count }, () =>
    limit.run(async (received) => {
      received(bytes);
      await ended;
    }),
  );
  const outcomes = Promise.allSettled(reviews).then((all) =>
    all.map((each) => (each.status === "fulfilled" ? "answered" : (each.reason as Error).message)),
  );
  return { outcomes, end };
}

test("512 reviews are answered at once, and the next ones when one has ended", async () => {
  const limit = new ReviewLimit();
  const { outcomes, end } = begin(limit, 512, 256 * KIB);
  await expect(limit.run(async () => "answered")).rejects.toThrow("too many reviews at once: ask again");
  end();
  expect(new Set(await outcomes)).toEqual(new Set(["answered"]));
  expect(await limit.run(async () => "answered")).toBe("answered");
});

test("4 large ones at once, beside those of the usual size", async () => {
  const limit = new ReviewLimit();
  const { outcomes, end } = begin(limit, 5, 256 * KIB + 1);
  await expect(limit.run(async (received) => received(256 * KIB))).resolves.toBeUndefined();
  end();
  const crowded = "too many large reviews at once: ask again";
  expect(await outcomes).toEqual(["answered", "answered", "answered", "answered", crowded]);
  // One that grows counts once, and makes room once, however it ends.
  for (let round = 0; round < 10; round++) {
    const failed = limit.run(async (received) => {
      for (const bytes of [1, 257 * KIB, 1024 * KIB]) received(bytes);
      throw new Error("failed");
    });
    await expect(failed).rejects.toThrow("failed");
  }
});

test("bytes after the end of a review do not count", async () => {
  const limit = new ReviewLimit();
  for (let round = 0; round < 10; round++) {
    let late: (bytes: number) => void = () => undefined;
    await limit.run(async (received) => {
      late = received;
    });
    expect(() => late(257 * KIB)).toThrow("the review has ended");
  }
  await expect(limit.run(async (received) => received(257 * KIB))).resolves.toBeUndefined();
});

test("the answer has Retry-After", async () => {
  const limit = new ReviewLimit();
  const { outcomes, end } = begin(limit, 512, 0);
  await expect(limit.run(async () => undefined)).rejects.toMatchObject({
    status: 503,
    headers: { "retry-after": "1" },
  });
  end();
  await outcomes;
});
