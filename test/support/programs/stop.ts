/** A program that ends at the second signal to stop. */
import { args, environment, onStop, start, write } from "../../../system/program";

start(
  () =>
    new Promise((resolve) => {
      let count = 0;
      onStop(() => {
        write(`stop ${++count}\n`);
        if (count === 2) resolve(4);
      });
      write(`${JSON.stringify({ args, name: environment["NAME"], unset: environment["UNSET"] })}\n`);
    }),
);
