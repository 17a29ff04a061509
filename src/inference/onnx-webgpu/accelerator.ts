import type { Accelerator, AcceleratorCapabilities } from '../../ports/accelerator.ts';
import { createSessionAccelerator, type OnnxCpuDependencies } from '../onnx-cpu/session-accelerator.ts';

const CAPABILITIES: AcceleratorCapabilities = {
  backend: 'onnx-webgpu',
  simulated: false,
  kernels: ['dense'],
  memories: ['device'],
  datatypes: ['FP32', 'INT64'],
};

/**
 * Additions on a device come in another order, and its functions have an error of their own (WGSL allows exp and the like several units in the last
 * place): no golden case is held more tightly than this.
 */
const TOLERANCE_MIN = 1e-4;

/**
 * Whole graphs on ONNX Runtime's WebGPU provider, which runs on Vulkan here; nodes that it does not have stay on the CPU. A machine without a device
 * refuses every version with that reason.
 */
export function createOnnxWebgpuAccelerator(dependencies: OnnxCpuDependencies): Accelerator {
  return createSessionAccelerator(CAPABILITIES, dependencies, {
    provider: 'webgpu',
    toleranceMin: TOLERANCE_MIN,
  });
}
