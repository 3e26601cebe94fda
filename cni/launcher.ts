/**
 * The node's plugin file: a static ELF executable of a few hundred bytes that starts the real one with a C library
 * that lies beside it, so that the node needs a kernel and nothing else.
 *
 * It passes on only the environment that CNI knows, so that no variable of the caller (`BUN_*`, `NODE_*`, `LD_*`)
 * changes what the plugin does.
 */

export type LauncherArchitecture = "x64" | "arm64";

/** What the launcher starts; all are absolute paths as the node has them. */
export interface Launch {
  readonly architecture: LauncherArchitecture;
  /** The C library's dynamic loader. */
  readonly loader: string;
  /** The directory that holds the C library. */
  readonly libraries: string;
  /** The plugin itself. */
  readonly executable: string;
}

const BASE = 0x400000;
const ELF_HEADER = 64;
const PROGRAM_HEADER = 56;
const POINTER = 8;
/** Of the largest page that a supported kernel has. */
const ALIGNMENT = 0x10000;

/** Addresses and lengths that stand in the machine code. */
interface Places {
  readonly loader: number;
  readonly argv: number;
  readonly message: number;
  readonly messageLength: number;
}

function word(value: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes.toString("hex");
}

const CNI = Buffer.from("CNI_").toString("hex");
const PATH = Buffer.from("PATH").toString("hex");

const machineCode: Readonly<Record<LauncherArchitecture, (at: Places) => readonly string[]>> = {
  x64: (at) => [
    "488b3c24", //                 mov rdi, [rsp]           the number of arguments
    "488d74fc10", //               lea rsi, [rsp+rdi*8+16]  the environment
    "4889f2", //                   mov rdx, rsi
    "4889f3", //                   mov rbx, rsi             where the next kept variable goes
    "488b06", //             next: mov rax, [rsi]
    "4883c608", //                 add rsi, 8
    "4885c0", //                   test rax, rax
    "741b", //                     je done
    "8b08", //                     mov ecx, [rax]
    `81f9${CNI}`, //               cmp ecx, "CNI_"
    "7408", //                     je keep
    `81f9${PATH}`, //              cmp ecx, "PATH"
    "75e2", //                     jne next
    "488903", //             keep: mov [rbx], rax
    "4883c308", //                 add rbx, 8
    "ebd9", //                     jmp next
    "488903", //             done: mov [rbx], rax
    `bf${word(at.loader)}`, //     mov edi, loader
    `be${word(at.argv)}`, //       mov esi, argv
    "b83b000000", //               mov eax, execve
    "0f05", //                     syscall
    "bf01000000", //               mov edi, stdout          it came back: there is no loader
    `be${word(at.message)}`, //    mov esi, message
    `ba${word(at.messageLength)}`, // mov edx, its length
    "b801000000", //               mov eax, write
    "0f05", //                     syscall
    "bf01000000", //               mov edi, 1
    "b8e7000000", //               mov eax, exit_group
    "0f05", //                     syscall
  ],
  arm64: (at) => [
    "e00340f9", //                 ldr x0, [sp]             the number of arguments
    "e1430091", //                 add x1, sp, #16
    "210c008b", //                 add x1, x1, x0, lsl #3   the environment
    "e20301aa", //                 mov x2, x1
    "e30301aa", //                 mov x3, x1               where the next kept variable goes
    "06030018", //                 ldr w6, "CNI_"
    "07030018", //                 ldr w7, "PATH"
    "248440f8", //           next: ldr x4, [x1], #8
    "040100b4", //                 cbz x4, done
    "850040b9", //                 ldr w5, [x4]
    "bf00066b", //                 cmp w5, w6
    "60000054", //                 b.eq keep
    "bf00076b", //                 cmp w5, w7
    "41ffff54", //                 b.ne next
    "648400f8", //           keep: str x4, [x3], #8
    "f8ffff17", //                 b next
    "7f0000f9", //           done: str xzr, [x3]
    "c0010018", //                 ldr w0, loader
    "c1010018", //                 ldr w1, argv
    "a81b80d2", //                 mov x8, #execve
    "010000d4", //                 svc #0
    "200080d2", //                 mov x0, #stdout          it came back: there is no loader
    "61010018", //                 ldr w1, message
    "62010018", //                 ldr w2, its length
    "080880d2", //                 mov x8, #write
    "010000d4", //                 svc #0
    "200080d2", //                 mov x0, #1
    "c80b80d2", //                 mov x8, #exit_group
    "010000d4", //                 svc #0
    CNI,
    PATH,
    word(at.loader),
    word(at.argv),
    word(at.message),
    word(at.messageLength),
  ],
};

const MACHINE: Readonly<Record<LauncherArchitecture, number>> = { x64: 62, arm64: 183 };

function programHeader(type: number, flags: number, size: number): Buffer {
  const header = Buffer.alloc(PROGRAM_HEADER);
  header.writeUInt32LE(type, 0);
  header.writeUInt32LE(flags, 4);
  for (const at of [16, 24]) header.writeBigUInt64LE(BigInt(size === 0 ? 0 : BASE), at);
  for (const at of [32, 40]) header.writeBigUInt64LE(BigInt(size), at);
  header.writeBigUInt64LE(BigInt(size === 0 ? 16 : ALIGNMENT), 48);
  return header;
}

function elfHeader(architecture: LauncherArchitecture, entry: number): Buffer {
  const header = Buffer.alloc(ELF_HEADER);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]); // ELF, 64 bits, little endian, version 1
  header.writeUInt16LE(2, 16); // an executable at fixed addresses
  header.writeUInt16LE(MACHINE[architecture], 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(entry), 24);
  header.writeBigUInt64LE(BigInt(ELF_HEADER), 32); // program headers follow
  header.writeUInt16LE(ELF_HEADER, 52);
  header.writeUInt16LE(PROGRAM_HEADER, 54);
  header.writeUInt16LE(2, 56);
  return header;
}

const PT_LOAD = 1;
const PT_GNU_STACK = 0x6474e551;
const READ_EXECUTE = 5;
const READ_WRITE = 6;

/** Texts with their terminating zeros, and where each begins. */
function layOut(texts: readonly string[], start: number): { bytes: Buffer; addresses: readonly number[] } {
  const encoded = texts.map((text) => Buffer.from(`${text}\0`));
  const addresses = encoded.map((_, index) => encoded.slice(0, index).reduce((sum, { length }) => sum + length, start));
  return { bytes: Buffer.concat(encoded), addresses };
}

function failure({ loader }: Launch): string {
  const msg = `linkerd-cni: cannot start ${loader}: the plugin's files on this node are incomplete`;
  return `${JSON.stringify({ cniVersion: "1.0.0", code: 5, msg, details: "" })}\n`;
}

/** The bytes of the launcher's executable file. */
export function launcher(launch: Launch): Uint8Array {
  const { architecture, loader, libraries, executable } = launch;
  const message = failure(launch);
  const code = (places: Places) => Buffer.from(machineCode[architecture](places).join(""), "hex");
  const entry = BASE + ELF_HEADER + 2 * PROGRAM_HEADER;
  const argv = (entry + code({ loader: 0, argv: 0, message: 0, messageLength: 0 }).length + POINTER) & -POINTER;
  const args = [loader, "--library-path", libraries, executable];
  const texts = layOut([...args, message], argv + (args.length + 1) * POINTER);
  const [loaderAt = 0] = texts.addresses;
  const pointers = Buffer.alloc((args.length + 1) * POINTER);
  texts.addresses.slice(0, -1).forEach((address, index) => {
    pointers.writeBigUInt64LE(BigInt(address), index * POINTER);
  });
  const places = {
    loader: loaderAt,
    argv,
    message: texts.addresses.at(-1) ?? 0,
    messageLength: Buffer.byteLength(message),
  };
  const body = Buffer.alloc(argv - entry);
  body.set(code(places));
  const content = Buffer.concat([body, pointers, texts.bytes]);
  const size = entry - BASE + content.length;
  return Buffer.concat([
    elfHeader(architecture, entry),
    programHeader(PT_LOAD, READ_EXECUTE, size),
    programHeader(PT_GNU_STACK, READ_WRITE, 0),
    content,
  ]);
}
