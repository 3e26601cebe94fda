import type { Expr } from "./expression";

type Scalar = string | number | boolean;

/** The unions that cdk8s generates, such as `Quantity`: objects with only a `value`. */
type IsUnion<T> = T extends { readonly value: unknown }
  ? Exclude<keyof T, "value"> extends never
    ? true
    : false
  : false;

/**
 * Fields that the generated types spell differently from the API. The generated classes convert them; `HelmObject` does
 * not, so its types use the API's names.
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

/** A present `T` with expressions inside; generated unions are plain scalars. */
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
 * A `T` in which an expression may replace any part. If a part or an expression yields nothing, the key or the item is
 * left out.
 */
export type Templated<T> = Part<T> | Expr<Part<T> | undefined>;

/** A present list: its items may be expressions, or absent if a condition does not hold. */
export type Parts<T> = readonly (Templated<T> | undefined)[];
