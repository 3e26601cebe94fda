export { fetchTransport } from "../../kubernetes/transport";
