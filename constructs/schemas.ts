import type { Schema } from "../helm/index";
import type { MultusValues } from "./multus/props";
import { multusValues as multus } from "./multus/values";
import type { Values } from "./props";
import { values as cni } from "./values";

/** The values of the chart linkerd2-cni. */
export const values: Schema<Values> = cni;

/** The values of the chart linkerd-multus. */
export const multusValues: Schema<MultusValues> = multus;
