import { provenance, workflowIdentity } from "./provenance";

const source = { commit: "1".repeat(40), dirty: false };
const workflow = {
  GITHUB_SERVER_URL: "https://github.com",
  GITHUB_REPOSITORY: "example/cni",
  GITHUB_REF: "refs/tags/v1.0.0",
  GITHUB_WORKFLOW_REF: "example/cni/.github/workflows/release.yml@refs/tags/v1.0.0",
  GITHUB_EVENT_NAME: "push",
  GITHUB_REPOSITORY_ID: "1",
  GITHUB_REPOSITORY_OWNER_ID: "2",
  RUNNER_ENVIRONMENT: "github-hosted",
  GITHUB_RUN_ID: "3",
  GITHUB_RUN_ATTEMPT: "4",
};

test("a workflow's provenance names the workflow, the commit and the run, as GitHub's own does", () => {
  expect(provenance(source, "1.0.0", workflow)).toEqual({
    buildDefinition: {
      buildType: "https://actions.github.io/buildtypes/workflow/v1",
      externalParameters: {
        workflow: {
          ref: "refs/tags/v1.0.0",
          repository: "https://github.com/example/cni",
          path: ".github/workflows/release.yml",
        },
      },
      internalParameters: {
        github: {
          event_name: "push",
          repository_id: "1",
          repository_owner_id: "2",
          runner_environment: "github-hosted",
        },
      },
      resolvedDependencies: [
        { uri: "git+https://github.com/example/cni@refs/tags/v1.0.0", digest: { gitCommit: source.commit } },
      ],
    },
    runDetails: {
      builder: { id: "https://github.com/example/cni/.github/workflows/release.yml@refs/tags/v1.0.0" },
      metadata: { invocationId: "https://github.com/example/cni/actions/runs/3/attempts/4" },
    },
  });
});

test("a build by hand says so, and whether files differed from the commit", () => {
  expect(provenance({ ...source, dirty: true }, "1.0.0", {})).toMatchObject({
    buildDefinition: {
      buildType: expect.stringMatching(/docs\/contribute\/release\.md#build-type$/),
      resolvedDependencies: [{ digest: { gitCommit: source.commit }, annotations: { dirty: true } }],
    },
  });
});

test("a workflow has an identity only where it may ask for a token", () => {
  expect(workflowIdentity(workflow)).toBeUndefined();
  expect(workflowIdentity({ ...workflow, ACTIONS_ID_TOKEN_REQUEST_URL: "https://token" })).toEqual({
    identity: "https://github.com/example/cni/.github/workflows/release.yml@refs/tags/v1.0.0",
    issuer: "https://token.actions.githubusercontent.com",
  });
  expect(workflowIdentity({})).toBeUndefined();
});
