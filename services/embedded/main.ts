import { runCli } from '../../src/cli/run-cli.ts';

await runCli(['start', ...process.argv.slice(2)]);
