import type { Accelerator, AcceleratorCapabilities } from '../../ports/accelerator.ts';
import {
  createSessionAccelerator,
  type OnnxCpuDependencies,
  type OnnxCpuOptions,
} from '../onnx-cpu/session-accelerator.ts';

const CAPABILITIES: AcceleratorCapabilities = {
  backend: 'sparse-cpu',
  simulated: false,
  kernels: ['dense', 'sparse'],
  memories: ['host'],
  datatypes: ['FP32', 'INT64'],
};

/**
 * As onnx-cpu, with a second kernel: `sparse` computes the products that take the candidates' inputs over their non-zeros alone, in WebAssembly, and
 * leaves the rest of the graph to ONNX Runtime. Who calls chooses: the kernel that is named runs, however many zeros there are.
 */
export function createSparseCpuAccelerator(
  dependencies: OnnxCpuDependencies,
  options: OnnxCpuOptions = {},
): Accelerator {
  return createSessionAccelerator(CAPABILITIES, dependencies, options);
}
