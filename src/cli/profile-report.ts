import type { AcceleratorProfile, VersionProfile } from '../core/profile/profile.ts';
import { tableLines } from './table.ts';

/** For people: what each version takes, batches, and where the sparse kernel overtakes the dense one. */
export function profileLines(profile: AcceleratorProfile): string[] {
  const { accelerator, backend, simulated, machine, software, versions, failed } = profile;
  const label = simulated
    ? ' SIMULATED: service times are drawn from a profile, no device was measured.'
    : '';
  const notes = [
    ...versions.flatMap(refusals),
    ...failed.map(({ family, version, reason }) => `${family}@${version} could not be measured: ${reason}`),
  ];
  return [
    `${accelerator}: ${backend}, ${machine}, ${software}.${label}`,
    ...section(
      'One request alone, ms on the accelerator (N candidates, T rows of a sequence):',
      costTable(versions),
    ),
    ...section('Batches of requests of a few candidates, ms for each request:', batchTable(versions)),
    ...section(
      'The sparse kernel, times as fast as the dense one, by zeros of the candidates:',
      sparseTable(versions),
    ),
    ...(notes.length === 0 ? [] : ['', ...notes]),
  ];
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length <= 1 ? [] : ['', title, ...lines];
}

function costTable(versions: readonly VersionProfile[]): string[] {
  const rows = versions.flatMap(({ family, version, targets }) =>
    targets.map((target) => [
      `${family}@${version}`,
      `${target.kernel}/${target.memory}`,
      costFormula(target.features, target.coefficients),
      percent(target.medianRelativeError),
      percent(target.p95RelativeError),
    ]),
  );
  return tableLines(['version', 'target', 'ms', 'off by', '95th'], rows);
}

/** A cost model for people: `0.05 + 0.0006·N`. */
export function costFormula(features: readonly string[], coefficients: readonly number[]): string {
  const terms = features.flatMap((feature, n) => {
    const coefficient = coefficients[n] ?? 0;
    if (coefficient === 0) return [];
    return [feature === '1' ? String(coefficient) : `${coefficient}·${feature.replaceAll('*', '·')}`];
  });
  return terms.join(' + ');
}

function batchTable(versions: readonly VersionProfile[]): string[] {
  const sizes = versions[0]?.batches.map(({ requests }) => requests) ?? [];
  const rows = versions.map(({ family, version, batches }) => [
    `${family}@${version}`,
    String(batches[0]?.candidates ?? ''),
    ...batches.map(({ ms, requests }) => String(Number((ms / requests).toPrecision(3)))),
  ]);
  return sizes.length === 0
    ? []
    : tableLines(['version', 'candidates', ...sizes.map((size) => `${size} at once`)], rows);
}

function sparseTable(versions: readonly VersionProfile[]): string[] {
  const shares =
    versions.flatMap(({ sparse }) => sparse)[0]?.compared.map(({ zeroShare }) => zeroShare) ?? [];
  const rows = versions.flatMap(({ family, version, sparse }) =>
    sparse.map((one) => [
      `${family}@${version}`,
      `${one.requests} × ${one.candidates}`,
      ...one.compared.map(({ ratio }) => String(Number(ratio.toPrecision(3)))),
      one.fasterBelowNonZeroShare === null ? 'never' : `nonZeroShare < ${one.fasterBelowNonZeroShare}`,
    ]),
  );
  return tableLines(['version', 'batch', ...shares.map(percent), 'faster where'], rows);
}

function refusals({ family, version, refusedKernels }: VersionProfile): string[] {
  return Object.entries(refusedKernels).map(
    ([kernel, why]) => `${family}@${version} cannot be run by ${kernel}: ${why}`,
  );
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(2))} %`;
}
