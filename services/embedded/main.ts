import { runCli } from '../../src/cli/main.ts';

await runCli(['start', ...process.argv.slice(2)]);
