import { loadSettings } from '../src/config/load-settings.ts';
import { memorySchemaRegistry } from '../src/adapters/registry/memory.ts';
import { systemClock } from '../src/adapters/system/clock.ts';
import { createCodecs } from '../src/contracts/codec.ts';
import { recordTopics } from '../src/contracts/topic-specs.ts';
import { topicNames } from '../src/contracts/topics.ts';
import type { Stack } from '../src/local-stack/stack.ts';
import { startStack } from '../src/local-stack/start-stack.ts';
import { compare, medianOf, ratio } from './pipeline/compare.ts';
import { modelAlonePerSecond } from './pipeline/model-alone.ts';
import { type Effort, readEffort } from './pipeline/options.ts';
import { encodedRequests } from './pipeline/requests.ts';
import { newEnvironment, type RunResult, type Variant } from './pipeline/run-once.ts';
import { median } from './pipeline/statistics.ts';
import type { BenchRow } from './run.ts';

const SIZES = [2_048, 32_768] as const;
const WINDOW = 512;
const RESULT_BYTES = { 2_048: 522, 32_768: 5_050 } as const;

const RELAY = { kind: 'relay', layout: 'one-process', patched: true } as const satisfies Variant;
const PIPELINE = { kind: 'pipeline', layout: 'one-process' } as const satisfies Variant;

type Of = (result: RunResult) => number;
const perSecond: Of = (result) => result.perSecond;
const cpuUs: Of = (result) => result.cpuUs;
