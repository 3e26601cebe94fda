export { httpsTransport as renewingTransport } from "../kubernetes/transport";
