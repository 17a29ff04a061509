import type { Accelerator, AcceleratorCapabilities } from '../../ports/accelerator.ts';
import {
  createSessionAccelerator,
  type OnnxCpuDependencies,
  type OnnxCpuOptions,
} from './session-accelerator.ts';

const CAPABILITIES: AcceleratorCapabilities = {
  backend: 'onnx-cpu',
  simulated: false,
  kernels: ['dense'],
  memories: ['host'],
  datatypes: ['FP32', 'INT64'],
};

/** Whole graphs on ONNX Runtime's CPU provider. */
export function createOnnxCpuAccelerator(
  dependencies: OnnxCpuDependencies,
  options: OnnxCpuOptions = {},
): Accelerator {
  return createSessionAccelerator(CAPABILITIES, dependencies, options);
}
