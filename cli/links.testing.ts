import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(__dirname, "..");

/** GitHub's anchors of headings. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w -]/g, "")
    .replaceAll(" ", "-");

/** Whether a link to this project leads to an existing page and section. */
export function leadsSomewhere(link: string | undefined): boolean {
  const [, page = "", section] = /\/blob\/main\/([^#]+)(?:#(.+))?$/.exec(link ?? "") ?? [];
  const file = join(ROOT, page);
  if (page === "" || !existsSync(file)) return false;
  const headings = readFileSync(file, "utf8").match(/^#+ .+$/gm) ?? [];
  return section === undefined || headings.some((heading) => anchor(heading.replace(/^#+ /, "")) === section);
}
