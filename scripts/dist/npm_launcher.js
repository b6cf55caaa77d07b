#!/usr/bin/env node
// Starts the binary of this platform, which npm installed as an optional dependency. Nothing is downloaded here.
"use strict";
const { spawn } = require("node:child_process");
const os = require("node:os");

const name = `${require("./package.json").name}-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/matsu`);
} catch {
  const cause = name in (require("./package.json").optionalDependencies ?? {})
    ? `The package ${name} is missing. Install again without --omit=optional.`
    : `There is no build for ${process.platform} on ${process.arch}. Build it from source.`;
  console.error(`matsu: ${cause}`);
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
// A client that ends this process means the server.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`matsu: cannot start ${binary}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
