/** A jest reporter that lists the skipped suites at the end of a run, because counts do not say what a suite needs. */
module.exports = class Skipped {
  constructor({ testNamePattern }) {
    // A test that was not asked for counts as skipped too.
    this.asked = testNamePattern === undefined || testNamePattern === "";
  }

  onRunComplete(_, { testResults }) {
    const tests = testResults.flatMap((file) => file.testResults).filter(({ status }) => status === "pending");
    const names = new Set(tests.map(({ ancestorTitles: [suite], title }) => suite ?? title));
    if (this.asked) for (const name of names) process.stderr.write(`skipped: ${name}\n`);
  }
};
