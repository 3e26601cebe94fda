/** Plain JavaScript: jest loads reporters as they are. */
const Skipped =
  jest.requireActual<
    new (config: {
      readonly testNamePattern: string | undefined;
    }) => { onRunComplete(contexts: unknown, results: unknown): void }
  >("../support/skipped.js");

const results = {
  testResults: [
    {
      testResults: [
        { ancestorTitles: ["containerd (needs ctr)", "image"], title: "is imported", status: "pending" },
        { ancestorTitles: ["containerd (needs ctr)"], title: "is run", status: "pending" },
        { ancestorTitles: ["others"], title: "runs", status: "passed" },
        { ancestorTitles: [], title: "alone", status: "pending" },
      ],
    },
  ],
};

afterEach(() => jest.restoreAllMocks());

/** The reporter's output at the end of a run. */
function said(testNamePattern?: string): string {
  const write = jest.spyOn(process.stderr, "write").mockReturnValue(true);
  new Skipped({ testNamePattern }).onRunComplete(undefined, results);
  return write.mock.calls.join("");
}

test("each suite that was skipped is named once, and a test without a suite", () => {
  expect(said()).toBe("skipped: containerd (needs ctr)\nskipped: alone\n");
});

test("nothing is reported if tests were chosen by name, because the others also count as skipped", () => {
  expect(said("runs")).toBe("");
});
