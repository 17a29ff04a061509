#!/usr/bin/env node
// Finds a Node that can run millrace, and runs it there. Plain JavaScript, so that an old Node gets as far as saying so.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'src', 'cli', 'main.ts');
const compiled = join(root, 'dist', 'src', 'cli', 'main.js');
// Node refuses to strip types under node_modules, so an install runs what was compiled when it was packed.
const isClone = existsSync(source) && !root.split(sep).includes('node_modules');
const entry = isClone ? source : compiled;
// What the Kafka client asks for; as `engines` in package.json says, which an old Node could not be trusted to have read.
const minimum = [22, 22];

const node = isRecent(process.versions.node) ? process.execPath : packagedNode(root);
if (node === undefined) {
  const advice = isClone ? `install a newer one, or run npm install in ${root}` : 'install a newer one';
  fail(`millrace: Node >= ${minimum.join('.')} is needed, this is ${process.versions.node}: ${advice}`);
} else if (!existsSync(entry)) {
  fail(`millrace: ${entry} is missing: this is neither a clone nor a whole install`);
} else {
  run(node);
}

function isRecent(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > minimum[0] || (major === minimum[0] && minor >= minimum[1]);
}

/** The Node of the npm package `node`, in this folder's node_modules or one above. */
function packagedNode(folder) {
  const program = process.platform === 'win32' ? 'node.exe' : 'node';
  const candidate = join(folder, 'node_modules', 'node', 'bin', program);
  if (existsSync(candidate)) return candidate;
  const parent = dirname(folder);
  return parent === folder ? undefined : packagedNode(parent);
}

function run(command) {
  const flags = isClone ? ['--disable-warning=ExperimentalWarning'] : [];
  const caches = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  // What was compiled by an earlier command need not be again.
  const env = { NODE_COMPILE_CACHE: join(caches, 'millrace', 'compiled'), ...process.env };
  const child = spawn(command, [...flags, entry, ...process.argv.slice(2)], { stdio: 'inherit', env });
  // A terminal sends Ctrl-C to the whole group: the child has it already, and a second one would mean "at once".
  const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  const forwarded = new Set();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      if (forwarded.has(signal) || (signal === 'SIGINT' && hasTerminal)) return;
      forwarded.add(signal);
      child.kill(signal);
    });
  }
  child.on('error', (error) => fail(`millrace: ${command} cannot be run: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (signal === null) {
      process.exitCode = code;
      return;
    }
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}
