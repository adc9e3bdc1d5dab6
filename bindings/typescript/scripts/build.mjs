// Compiles the package to dist: as ECMAScript modules, and as CommonJS.

import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const root = dirname(import.meta.dirname ?? new URL(".", import.meta.url).pathname.replace(/\/$/, ""));
const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

rmSync(join(root, "dist"), { recursive: true, force: true });
for (const project of ["tsconfig.json", "tsconfig.cjs.json"]) {
  const { status } = spawnSync(process.execPath, [compiler, "-p", project], { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
writeFileSync(join(root, "dist/cjs/package.json"), '{ "type": "commonjs" }\n');
