import { ReviewLimit } from "./request";

const KIB = 1024;

/** Begins reviews of so many bytes that stay under way until they are ended. */
function begin(limit: ReviewLimit, count: number, bytes: number) {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const reviews = Array.from({ length: count }, () => limit.run(bytes, () => ended));
  const outcomes = Promise.allSettled(reviews).then((all) =>
    all.map((each) => (each.status === "fulfilled" ? "answered" : (each.reason as Error).message)),
  );
  return { outcomes, end };
}

const answer = async () => "answered";

test("512 reviews are answered at once, and the next ones when one has ended", async () => {
  const limit = new ReviewLimit();
  const { outcomes, end } = begin(limit, 512, 256 * KIB);
  await expect(limit.run(0, answer)).rejects.toThrow("too many reviews at once: ask again");
  end();
  expect(new Set(await outcomes)).toEqual(new Set(["answered"]));
  expect(await limit.run(0, answer)).toBe("answered");
});

test("4 large ones at once, beside those of the usual size", async () => {
  const limit = new ReviewLimit();
  const { outcomes, end } = begin(limit, 5, 256 * KIB + 1);
  expect(await limit.run(256 * KIB, answer)).toBe("answered");
  end();
  const crowded = "too many large reviews at once: ask again";
  expect(await outcomes).toEqual(["answered", "answered", "answered", "answered", crowded]);
  // Each makes room once, however it ends.
  for (let round = 0; round < 10; round++) {
    const failed = limit.run(257 * KIB, async () => {
      throw new Error("failed");
    });
    await expect(failed).rejects.toThrow("failed");
  }
  const again = begin(limit, 5, 257 * KIB);
  again.end();
  expect((await again.outcomes).filter((each) => each === "answered")).toHaveLength(4);
});

test("the answer has Retry-After", async () => {
  const limit = new ReviewLimit();
  const { outcomes, end } = begin(limit, 512, 0);
  await expect(limit.run(0, answer)).rejects.toMatchObject({
    status: 503,
    headers: { "retry-after": "1" },
  });
  end();
  await outcomes;
});
