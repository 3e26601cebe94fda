import { checked } from "./engine/fs";
import { host } from "./engine/host";

const RENAME_EXCHANGE = 2;

/** Exchanges two names atomically. @throws ENOENT, EINVAL: the file system cannot do it, ENOSYS: nor the kernel */
export const exchangeSync = (one: string, other: string): void =>
  void checked(host.renameAs(one, other, RENAME_EXCHANGE), "exchange", one, other);
