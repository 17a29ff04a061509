export const CAPACITY_CLASSES = ['dedicated', 'opportunistic'] as const;
export type CapacityClass = (typeof CAPACITY_CLASSES)[number];

/** Workers of one accelerator class and capacity class, fed by one dispatch topic. */
export interface FleetPool {
  readonly pool: string;
  readonly capacityClass: CapacityClass;
  /** Its service times come from a profile, not from the hardware that it names. */
  readonly simulated: boolean;
}

export interface Accelerator {
  /** What it can run. Not empty. */
  readonly kernels: readonly string[];
  /** Where tensors can live; the first is meant where a target names none. Not empty. */
  readonly memories: readonly string[];
  readonly pools: readonly FleetPool[];
}

export interface Fleet {
  readonly name: string;
  readonly accelerators: ReadonlyMap<string, Accelerator>;
}

function pools(name: string): FleetPool[] {
  return [
    { pool: name, capacityClass: 'dedicated', simulated: false },
    { pool: `${name}-spot`, capacityClass: 'opportunistic', simulated: false },
  ];
}

/** What these functions check a policy against where their caller names no fleet; the same as examples/fleets/reference.yaml. */
export const REFERENCE_FLEET: Fleet = {
  name: 'reference',
  accelerators: new Map([
    [
      'gpu-v100',
      { kernels: ['dense', 'sparse', 'bias-fused'], memories: ['hbm', 'l2', 'host'], pools: pools('v100') },
    ],
    [
      'gpu-a100',
      {
        kernels: ['dense', 'sparse', 'attention', 'bias-fused'],
        memories: ['hbm', 'l2', 'host'],
        pools: pools('a100'),
      },
    ],
    ['mtia', { kernels: ['dense', 'sparse', 'bias-fused'], memories: ['hbm', 'l2'], pools: pools('mtia') }],
    ['fpga', { kernels: ['dense', 'attention'], memories: ['hbm', 'host'], pools: pools('fpga') }],
    [
      'cpu',
      {
        kernels: ['dense', 'sparse', 'attention', 'bias-fused'],
        memories: ['host', 'l2'],
        pools: pools('cpu'),
      },
    ],
  ]),
};
