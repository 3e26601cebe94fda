import { repository } from "../constructs/version";

/** A section of the README. */
export const readme = (section: string): string => `${repository}/blob/main/README.md#${section}`;

/** A page of docs/, perhaps with a section: `cli.md#check`. */
export const docs = (page: string): string => `${repository}/blob/main/docs/${page}`;

/** The page of an alert or an Event. */
export const runbook = (name: string): string => docs(`runbooks/${name}.md`);
