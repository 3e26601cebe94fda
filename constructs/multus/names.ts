import {
  Label,
  MULTUS_NAME,
  NetworkDefinition,
  OperatorPath,
  WEBHOOK_SECRET,
  WEBHOOK_SERVICE,
} from "../../cni/contract";

/** The name of the operator's resources. */
export const NAME = MULTUS_NAME;
/** The Service that the API server calls. */
export const SERVICE = WEBHOOK_SERVICE;
/** The Secret with the webhook's certificate from the operator. */
export const OWN_SECRET = WEBHOOK_SECRET;
/** The Secret with the certificate from cert-manager; its name differs so that neither uses the other's. */
export const ISSUED_SECRET = `${SERVICE}-certificate`;
/** The authority that signs it if no issuer is given: a cert-manager Certificate and its Secret. */
export const AUTHORITY = `${SERVICE}-ca`;
/** The issuer of the self-signed authority. */
export const ROOT = `${SERVICE}-root`;
/** The path of the webhook. */
export const WEBHOOK_PATH = OperatorPath.webhook;

/** The API group of the objects that the operator writes. */
export const DEFINITION_VERSION = NetworkDefinition.apiVersion;

/** The labels that select the operator's pods. */
export const SELECTOR = { [Label.name]: NAME } as const;
