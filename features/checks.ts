import type { CheckedFeature } from "../cli/check/feature";
import { nodeTaint } from "./taint/check";

/** The optional features that `l5d-cni check` knows. */
export const CHECKED_FEATURES: readonly CheckedFeature[] = [nodeTaint];
