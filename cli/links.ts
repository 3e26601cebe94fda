import { fieldOf } from "./flags";

const runbooks = String(fieldOf(["prometheusRule", "runbookUrl"]).default);

/** A section of the README. */
export const readme = (section: string): string => `${runbooks.replace(/\/docs\/runbooks$/, "")}/README.md#${section}`;

/** A page of docs/, perhaps with a section: `cli.md#check`. */
export const docs = (page: string): string => `${runbooks.replace(/\/runbooks$/, "")}/${page}`;

/** The page of an alert or an Event. */
export const runbook = (name: string): string => `${runbooks}/${name}.md`;
