import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Connections } from "./connections";

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

/** A connection on which a request has begun. */
function begun() {
  const connections = new Connections(1_000);
  const socket = Object.assign(new EventEmitter(), { destroy: jest.fn(), end: jest.fn() });
  const response = new EventEmitter();
  connections.add(socket as unknown as Socket);
  connections.begin({ socket } as unknown as IncomingMessage, response as unknown as ServerResponse);
  return { socket, response };
}

test("a connection is kept for the next request for so long, and no longer", () => {
  const { socket, response } = begun();
  jest.advanceTimersByTime(5_000);
  response.emit("close");
  jest.advanceTimersByTime(999);
  expect(socket.destroy).not.toHaveBeenCalled();
  jest.advanceTimersByTime(1);
  expect(socket.destroy).toHaveBeenCalledTimes(1);
});

test("nothing is kept of a connection that the client broke off", () => {
  const { socket, response } = begun();
  // In the order in which `node:http` tells.
  socket.emit("close");
  response.emit("close");
  expect(jest.getTimerCount()).toBe(0);
});
