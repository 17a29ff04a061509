const QUEUE_THRESHOLD = 5;
const MEMORY_THRESHOLD = 0.8;

export interface ReplicaLoad {
  queued: number;
  /** Share of its cache memory in use. */
  memory: number;
}

/**
 * How saturated the Gateway API Inference Extension takes a pool to be: from 1 on, requests of negative priority are refused and all others let in.
 * kubernetes-sigs/gateway-api-inference-extension, saturation detector with its default thresholds: the mean over replicas of max(queue / 5, memory / 0.8).
 */
export function gieSaturation(replicas: readonly ReplicaLoad[]): number {
  if (replicas.length === 0) return 1;
  const sum = replicas.reduce(
    (total, { queued, memory }) => total + Math.max(queued / QUEUE_THRESHOLD, memory / MEMORY_THRESHOLD),
    0,
  );
  return sum / replicas.length;
}
