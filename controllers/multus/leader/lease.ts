export * from "../../../kubernetes/lease";
