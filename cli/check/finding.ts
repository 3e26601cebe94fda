/** The result of one check. `warning`: it works, but not as expected; `error`: it does not work. */
export interface Finding {
  readonly category: string;
  /** The expected state. */
  readonly what: string;
  readonly result: "success" | "warning" | "error";
  /** A fact beside a success. */
  readonly detail?: string;
  /** The problem, the remedy, and a link to an explanation. */
  readonly problem?: string;
  readonly remedy?: string;
  readonly link?: string;
}

/** The message about a problem. */
export interface Trouble {
  readonly problem: string;
  readonly remedy: string;
  readonly link: string;
}

/** Makes the findings of one category. */
export class Category {
  constructor(readonly name: string) {}

  good(what: string, detail?: string): Finding {
    return { category: this.name, what, result: "success", ...(detail === undefined ? {} : { detail }) };
  }

  bad(what: string, trouble: Trouble): Finding {
    return { category: this.name, what, result: "error", ...trouble };
  }

  odd(what: string, trouble: Trouble): Finding {
    return { category: this.name, what, result: "warning", ...trouble };
  }

  /** A success, unless there is trouble. */
  judge(what: string, trouble: Trouble | undefined, detail?: string): Finding {
    return trouble === undefined ? this.good(what, detail) : this.bad(what, trouble);
  }
}
