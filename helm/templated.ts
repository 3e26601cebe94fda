import type { Expr } from "./expression";

type Scalar = string | number | boolean;

/** The unions that cdk8s generates, such as `Quantity`: objects that have a `value` and nothing else. */
type IsUnion<T> = T extends { readonly value: unknown }
  ? Exclude<keyof T, "value"> extends never
    ? true
    : false
  : false;

/**
 * Fields that the generated types spell otherwise than the API: the generated classes convert them, and `HelmObject`
 * leaves names alone, so its types have the API's.
 */
interface ApiNames {
  readonly clientIp: "clientIP";
  readonly clusterIp: "clusterIP";
  readonly datasetUuid: "datasetUUID";
  readonly diskUri: "diskURI";
  readonly downwardApi: "downwardAPI";
  readonly externalId: "externalID";
  readonly hostIp: "hostIP";
  readonly hostIpc: "hostIPC";
  readonly hostPid: "hostPID";
  readonly insecureSkipTlsVerify: "insecureSkipTLSVerify";
  readonly loadBalancerIp: "loadBalancerIP";
  readonly nodeId: "nodeID";
  readonly nonResourceUrLs: "nonResourceURLs";
  readonly openApiv3Schema: "openAPIV3Schema";
  readonly pdId: "pdID";
  readonly podCidr: "podCIDR";
  readonly podCidRs: "podCIDRs";
  readonly providerId: "providerID";
  readonly ref: "$ref";
  readonly scaleIo: "scaleIO";
  readonly schema: "$schema";
  readonly setHostnameAsFqdn: "setHostnameAsFQDN";
  readonly storagePolicyId: "storagePolicyID";
  readonly targetCpuUtilizationPercentage: "targetCPUUtilizationPercentage";
  readonly targetWwNs: "targetWWNs";
  readonly volumeId: "volumeID";
  readonly xKubernetesEmbeddedResource: "x-kubernetes-embedded-resource";
  readonly xKubernetesIntOrString: "x-kubernetes-int-or-string";
  readonly xKubernetesListMapKeys: "x-kubernetes-list-map-keys";
  readonly xKubernetesListType: "x-kubernetes-list-type";
  readonly xKubernetesMapType: "x-kubernetes-map-type";
  readonly xKubernetesPreserveUnknownFields: "x-kubernetes-preserve-unknown-fields";
  readonly xKubernetesValidations: "x-kubernetes-validations";
}

type ApiName<Key> = Key extends keyof ApiNames ? ApiNames[Key] : Key;

/** A `T` that is there, with expressions inside; generated unions are plain scalars. */
export type Part<T> = T extends Scalar
  ? T
  : IsUnion<T> extends true
    ? string | number
    : T extends readonly (infer Item)[]
      ? readonly (Templated<Item> | undefined)[]
      : T extends object
        ? { readonly [Key in keyof T as ApiName<Key>]: Templated<T[Key]> | undefined }
        : T;

/**
 * A `T` in which an expression may stand for any part. Where a part or an expression may yield nothing, the key or
 * the item is left out.
 */
export type Templated<T> = Part<T> | Expr<Part<T> | undefined>;

/** A list that is there: its items may be expressions, and nothing where a condition does not hold. */
export type Parts<T> = readonly (Templated<T> | undefined)[];
