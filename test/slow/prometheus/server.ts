import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../src/local-stack/free-port.ts';
import { eventually } from '../real-pipeline.ts';
import { findPrometheus } from './program.ts';

export interface PrometheusServer {
  url: string;
  close(): Promise<void>;
}

/**
 * A real Prometheus on loopback, which scrapes the target once a second where there is one.
 *
 * @param target `host:port`
 */
export async function startPrometheus(target?: string): Promise<PrometheusServer> {
  const program = await findPrometheus();
  const folder = mkdtempSync(join(tmpdir(), 'millrace-prometheus-'));
  const config = join(folder, 'prometheus.yml');
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: '1s' },
      scrape_configs:
        target === undefined ? [] : [{ job_name: 'test', static_configs: [{ targets: [target] }] }],
    }),
  );
  const url = `http://127.0.0.1:${await freePort()}`;
  const child = spawn(
    program,
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${url.slice('http://'.length)}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-10_000);
  });
  const ended = once(child, 'exit');
  let closing: Promise<void> | undefined;
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`prometheus ended: ${log}`);
      const response = await fetch(`${url}/-/ready`).catch(() => undefined);
      await response?.body?.cancel();
      return response?.status === 200;
    },
    'prometheus is ready',
    60_000,
  );
  return {
    url,
    close: () => {
      closing ??= (async () => {
        child.kill('SIGTERM');
        await ended;
        rmSync(folder, { recursive: true, force: true });
      })();
      return closing;
    },
  };
}
