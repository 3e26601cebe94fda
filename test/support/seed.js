const fc = require("fast-check");

/**
 * Tests generate the same values in every run, so that one commit has one outcome. SEED=random generates other values,
 * SEED=<number> the values of a failure again.
 */
const { SEED = "1" } = process.env;
const seed = SEED === "random" ? Math.floor(Math.random() * 2 ** 31) : Number(SEED);
if (!Number.isInteger(seed)) throw new Error(`SEED=${SEED}: an integer, or random`);
process.env.SEED = String(seed);
fc.configureGlobal({ seed });
