import { repository } from "../../constructs/version";

/** The sources of a build. */
export interface Source {
  /** Of git. */
  readonly commit: string;
  /** Whether files differed from the commit. */
  readonly dirty: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** GitHub's description of a build by one of its workflows. */
const WORKFLOW = "https://actions.github.io/buildtypes/workflow/v1";
const MANUAL = `${repository}/blob/main/docs/contribute/release.md`;

/** The identity of keyless signatures in a workflow of GitHub; undefined elsewhere. */
export function workflowIdentity(env: Environment): { readonly identity: string; readonly issuer: string } | undefined {
  const { GITHUB_WORKFLOW_REF: workflow, GITHUB_SERVER_URL: server } = env;
  if (workflow === undefined || env["ACTIONS_ID_TOKEN_REQUEST_URL"] === undefined) return undefined;
  return { identity: `${server}/${workflow}`, issuer: "https://token.actions.githubusercontent.com" };
}

/** SLSA provenance v1 of a build: the predicate, as JSON. @param env of the build */
export function provenance({ commit, dirty }: Source, version: string, env: Environment): object {
  const of = (uri: string) => ({
    uri: `git+${uri}`,
    digest: { gitCommit: commit },
    ...(dirty ? { annotations: { dirty } } : {}),
  });
  const { GITHUB_WORKFLOW_REF: workflow, GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name, GITHUB_REF: ref } = env;
  if (workflow === undefined) {
    return {
      buildDefinition: {
        buildType: `${MANUAL}#build-type`,
        externalParameters: { repository, version },
        internalParameters: {},
        resolvedDependencies: [of(repository)],
      },
      runDetails: { builder: { id: `${MANUAL}#builder` }, metadata: {} },
    };
  }
  const path = workflow.slice(`${name}/`.length).replace(/@.*$/, "");
  return {
    buildDefinition: {
      buildType: WORKFLOW,
      externalParameters: { workflow: { ref, repository: `${server}/${name}`, path } },
      internalParameters: {
        github: {
          event_name: env["GITHUB_EVENT_NAME"],
          repository_id: env["GITHUB_REPOSITORY_ID"],
          repository_owner_id: env["GITHUB_REPOSITORY_OWNER_ID"],
          runner_environment: env["RUNNER_ENVIRONMENT"],
        },
      },
      resolvedDependencies: [of(`${server}/${name}@${ref}`)],
    },
    runDetails: {
      builder: { id: `${server}/${workflow}` },
      metadata: {
        invocationId: `${server}/${name}/actions/runs/${env["GITHUB_RUN_ID"]}/attempts/${env["GITHUB_RUN_ATTEMPT"]}`,
      },
    },
  };
}
