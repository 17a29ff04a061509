import type { FamilyContract, InputContract } from '../../core/request/family.ts';
import type { ModelVersion } from './model-version.ts';

/**
 * What a request to the family must look like, so that any of its versions can score it: the inputs, which all versions share, and
 * the tightest limits; ids alone are enough where every version has an item table or a feature source. The SLA is that of the newest baseline.
 */
export function familyContract(family: string, versions: readonly ModelVersion[]): FamilyContract {
  const reference = versions.findLast((version) => version.variant === 'baseline') ?? versions.at(-1);
  if (reference === undefined) throw new RangeError(`${family} has no version`);
  const least = (limit: keyof ModelVersion['limits']): number =>
    Math.min(...versions.map((version) => version.limits[limit]));
  return {
    family,
    slaMs: reference.slaMs,
    versions: versions.map(({ version, variant }) => ({ version, variant })),
    candidatesMax: least('candidatesMax'),
    sequenceLengthMax: least('sequenceLengthMax'),
    tensorBytesMax: least('tensorBytesMax'),
    inputs: reference.inputs.map((input) => ({
      ...input,
      required: versions.some((version) => requires(version, input.name)),
    })),
  };
}

function requires({ inputs }: ModelVersion, name: string): boolean {
  return inputs.some((input) => input.name === name && input.required);
}

/** Why a request for `reference` could not be scored by `version`; `undefined` where it could. */
export function inputDifference(version: ModelVersion, reference: ModelVersion): string | undefined {
  // Rows that may come from a table or a source are sent all the same where another version has none.
  const isOptional = ({ side, required, idFrom }: InputContract): boolean =>
    side !== 'candidate' && !required && idFrom === undefined;
  const describe = (input: InputContract): string =>
    `${input.name}: ${input.side} ${input.datatype} [${input.shape.join(', ')}]${isOptional(input) ? ' optional' : ''}`;
  const wanted = reference.inputs.map(describe);
  const given = version.inputs.map(describe);
  const odd = [
    ...given.filter((input) => !wanted.includes(input)),
    ...wanted.filter((input) => !given.includes(input)),
    ...otherIds(version, reference),
  ];
  if (odd.length === 0) return undefined;
  const name = `${version.family}/${version.version}`;
  return `${name} takes other inputs than ${reference.family}/${reference.version}: ${odd.join('; ')}`;
}

/** Whoever sends no row for an input sends one id for it, and every version must find its row by that. */
function otherIds(version: ModelVersion, reference: ModelVersion): string[] {
  const idOf = ({ inputs }: ModelVersion, name: string): string | undefined =>
    inputs.find((input) => input.name === name)?.idFrom;
  return version.inputs.flatMap(({ name, idFrom }) => {
    const other = idOf(reference, name);
    return idFrom === undefined || other === undefined || idFrom === other
      ? []
      : [`${name}: by ${idFrom}, not ${other}`];
  });
}

/** Why a request that the family takes could be too much for `version`; `undefined` where none is. */
export function limitDifference(
  version: ModelVersion,
  family: FamilyContract | undefined,
): string | undefined {
  if (family === undefined) return undefined;
  const limits = ['candidatesMax', 'sequenceLengthMax', 'tensorBytesMax'] as const;
  const tighter = limits
    .filter((limit) => version.limits[limit] < family[limit])
    .map((limit) => `${limit} is ${version.limits[limit]}, and its family takes ${family[limit]}`);
  const withoutTable = family.inputs
    .filter(({ byIds, idFrom, required, name }) => {
      const mayBeAnId = byIds === true || idFrom !== undefined;
      return mayBeAnId && !required && requires(version, name);
    })
    .map(
      ({ name }) =>
        `it has no item table for ${name}, nor a feature source, and requests to its family may send ids alone`,
    );
  tighter.push(...withoutTable);
  if (tighter.length === 0) return undefined;
  return `${version.family}/${version.version} takes less than requests to its family may have: ${tighter.join('; ')}`;
}
