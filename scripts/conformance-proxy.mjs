// Adds the token to requests of the conformance suite, which has none, and passes everything else on as it came:
//   conformance-proxy.mjs ADDRESS TOKEN_FILE     prints its own address
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";

const target = new URL(process.argv[2]);
const token = readFileSync(process.argv[3], "utf8").trim();

const server = createServer((from, to) => {
  const headers = { ...from.headers, authorization: `Bearer ${token}` };
  const options = { host: target.hostname, port: target.port, method: from.method, path: from.url, headers };
  const passed = request(options, (reply) => {
    to.writeHead(reply.statusCode, reply.headers);
    reply.pipe(to);
  });
  passed.on("error", () => to.destroy());
  to.on("close", () => passed.destroy());
  from.pipe(passed);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
