// Stands between a program and Sprag and changes nothing: a test can act at an exact moment of the conversation.

import http from "node:http";
import { once } from "node:events";

/**
 * Gives its URL and how to close it. Requests that carry something are numbered from 1: `asks(number)` is awaited
 * before one goes on, `answers(number, run)` once the first bytes of its answer went to the program.
 */
export async function relay(url, { asks = async () => {}, answers = async () => {} }) {
  const { hostname, port } = new URL(url);
  let asked = 0;
  const server = http.createServer(async (request, response) => {
    const { method, url: path, headers } = request;
    const number = method === "POST" ? (asked += 1) : 0;
    await asks(number);
    const onward = http.request({ hostname, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
      answer.once("data", () => answers(number, answer.headers["x-sprag-run-id"]));
      answer.on("error", () => response.destroy());
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => new Promise((resolve) => server.close(resolve).closeAllConnections());
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}
