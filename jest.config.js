/** One project a suite: `unit` is what `npm test` runs; the others need root, a kernel feature or a program. */
const suite = (displayName, testMatch) => ({
  displayName,
  testMatch,
  testEnvironment: "node",
  resolver: "<rootDir>/test/support/node/resolver.js",
  setupFiles: ["<rootDir>/test/support/seed.js"],
  transform: {
    "\\.ts$": [
      "@swc/jest",
      { jsc: { target: "es2022", parser: { syntax: "typescript" } }, module: { type: "commonjs" } },
    ],
  },
  modulePathIgnorePatterns: ["<rootDir>/dist/", "<rootDir>/.cache/previous/"],
});

module.exports = {
  // Not a bound on speed: a busy machine may be many times slower than an idle one, and pause for seconds.
  testTimeout: 300_000,
  reporters: ["default", "<rootDir>/test/support/skipped.js"],
  projects: [
    suite("unit", [
      "<rootDir>/{cni,system,process,kubernetes,host,netlink,plugin,nri,installer,controllers,helm,constructs,charts,cli,build,demo}/**/*.test.ts",
      "<rootDir>/test/unit/**/*.test.ts",
    ]),
    suite("kernel", ["<rootDir>/test/kernel/**/*.test.ts"]),
    suite("chart", ["<rootDir>/test/chart/**/*.test.ts"]),
    suite("image", ["<rootDir>/test/image/**/*.test.ts"]),
    suite("release", ["<rootDir>/test/release/**/*.test.ts"]),
    suite("cluster", ["<rootDir>/test/cluster/**/*.test.ts"]),
  ],
};
