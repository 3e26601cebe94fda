/** What the plugin asks of the file system, so that everything above runs with another. All throw SystemError. */
export interface Files {
  /** Gives a descriptor; `flags` are those of open(2). A file that is made is for its owner alone. */
  open(path: string, flags: number): number;
  /** How many bytes were put into the buffer; 0 at the end. */
  read(descriptor: number, buffer: Uint8Array): number;
  /** How many of the bytes were written. */
  write(descriptor: number, bytes: Uint8Array): number;
  /** Bytes of an open file. */
  size(descriptor: number): number;
  close(descriptor: number): void;
  rename(from: string, to: string): void;
  /** Which file a path leads to. */
  identify(path: string): FileId;
}

/** What tells files apart. */
export interface FileId {
  readonly device: string;
  readonly inode: bigint;
}

/** Flags of open(2) that x64 and arm64 share, from the kernel's asm-generic/fcntl.h. */
export const Open = {
  readOnly: 0x0,
  writeOnly: 0x1,
  create: 0x40,
  append: 0x400,
  nonBlocking: 0x800,
  closeOnExec: 0x80000,
} as const;
