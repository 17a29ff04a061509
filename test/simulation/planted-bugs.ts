/** A bug as an edit of one file of src: this exact text, which is there once, becomes the other. */
export interface PlantedBug {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const RUN_STAGE = 'stages/run-stage.ts';
const ROUTER = 'stages/request-router/router.ts';
const WAITING = 'stages/request-router/waiting.ts';
const ADOPTION = 'stages/request-router/pointer-adoption.ts';
const RUNNER = 'stages/accelerator-worker/batch-runner.ts';
const WORKER = 'stages/accelerator-worker/worker.ts';
const JOB_QUEUE = 'stages/accelerator-worker/job-queue.ts';
const SLOT = 'core/routing/slot.ts';
const CONTROLLER = 'stages/policy-controller/controller.ts';

/** What random fault schedules are tried on; see planted.ts, and docs/reliability.md for which they find. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  // The loop of every stage
  {
    name: 'a record is acknowledged before its output is stored',
    file: RUN_STAGE,
    from: '      this.#deps.bus.produce(traced(output, record)).then(\n        () => this.#acknowledge(record),',
    to: '      this.#acknowledge(record);\n      this.#deps.bus.produce(traced(output, record)).then(\n        () => undefined,',
  },
  {
    name: 'a record is acknowledged once the first of its outputs is stored',
    file: RUN_STAGE,
    from: '      if (pending > 0) return;',
    to: '      if (pending !== outputs.length - 1) return;',
  },
  {
    name: 'a drain does not wait for what is in flight',
    file: RUN_STAGE,
    from: '    while (partitions.some(isBusy)) {',
    to: '    while (partitions.length > 9_999 && partitions.some(isBusy)) {',
  },
  {
    name: 'a record in an unknown schema is a dead letter at once',
    file: RUN_STAGE,
    from: '        this.#schemaWait.wait(record, decoded, () => this.#decode(record, receivedAtMs, inTopicMs));',
    to: "        this.#deadLetter(record, undefined, 'POISON', 'its schema is not known');",
  },
  {
    name: 'a registry that was away is not asked again',
    file: 'stages/schema-wait.ts',
    from: '          if (this.#waiting.has(entry)) this.#ask(entry, schema);',
    to: '',
  },
  {
    name: 'a dead letter has no result',
    file: 'stages/dead-letters.ts',
    from: "      options.results.record(result, request?.resultPartition ?? null, payload === 'hash'),",
    to: '',
  },
  {
    name: 'a dead letter has a result, and no letter',
    file: 'stages/dead-letters.ts',
    from: `      deadLetterRecord({
        record,
        topic,
        partition: record.partition % options.partitionsOf(topic),
        stage: options.stage,
        code,
        message: reasonText(message),
        payload: payload ?? options.payload,
      }),`,
    to: '',
  },
  {
    name: 'the partition of a result depends on who answers',
    file: 'stages/results.ts',
    from: 'partition: chosen ? resultPartition : partitionForKey(key, partitions)',
    to: 'partition: chosen ? resultPartition : (result.target?.worker.length ?? 0) % partitions',
  },
  // Requests on their way
  {
    name: 'the wait on ingress is charged twice',
    file: 'stages/feature-extractor/extract.ts',
    from: 'budgetRemainingMs: check.budgetMs - inTopicMs - extractMs,',
    to: 'budgetRemainingMs: check.budgetMs - 2 * inTopicMs - extractMs,',
  },
  {
    name: 'the wait on the features topic is not charged',
    file: 'stages/request-router/stage.ts',
    from: 'deadlineMs: delivery.receivedAtMs + request.budgetRemainingMs - delivery.inTopicMs,',
    to: 'deadlineMs: delivery.receivedAtMs + request.budgetRemainingMs,',
  },
  {
    name: 'the wait on the dispatch topic is not charged',
    file: WORKER,
    from: 'deadlineMs: delivery.receivedAtMs + dispatch.budgetRemainingMs - delivery.inTopicMs,',
    to: 'deadlineMs: delivery.receivedAtMs + dispatch.budgetRemainingMs,',
  },
  {
    name: 'a dispatch has the whole budget again',
    file: 'stages/request-router/outputs.ts',
    from: 'budgetRemainingMs: job.deadlineMs - nowMs,',
    to: 'budgetRemainingMs: request.budgetMs,',
  },
  {
    name: 'a request that expires in the router has no answer',
    file: ROUTER,
    from: 'job.finish([this.#deps.results.record(expiredResult(job, nowMs), job.request.resultPartition)]);',
    to: 'job.finish([]);',
  },
  {
    name: 'the fallback is tried first',
    file: 'core/routing/choose.ts',
    from: '  for (const accelerator of [target.accelerator, ...target.fallback]) {',
    to: '  for (const accelerator of [...target.fallback, target.accelerator]) {',
  },
  {
    name: 'a request that has to go on waiting is forgotten',
    file: WAITING,
    from: '      else queue.push(next);',
    to: '',
  },
  {
    name: 'requests that wait are lost when the policy changes',
    file: ROUTER,
    from: '    for (const job of jobs) this.#begin(job, undefined);',
    to: '    jobs.length = 0;',
  },
  {
    name: 'the router finishes what waits of partitions that go away',
    file: ROUTER,
    from: 'waiting.job.record))) job.abandon();',
    to: 'waiting.job.record))) job.finish([]);',
  },
  {
    name: 'what stays in a queue is lost when some of it goes away',
    file: 'core/batching/work-queue.ts',
    from: '    for (const entry of kept) this.#insert(entry);',
    to: '',
  },
  {
    name: 'all dispatches of a router have one number',
    file: ROUTER,
    from: '    this.#sequence = sequence;',
    to: '',
  },
  // Credits and acknowledgements
  {
    name: 'acknowledgements are not heeded',
    file: ROUTER,
    from: '    if (this.fleet.applyAck(ack, this.#deps.clock.monotonicMs())) this.#retryWaiting();',
    to: '',
  },
  {
    name: 'an acknowledgement that comes twice counts twice',
    file: SLOT,
    from: '      this.#forget(entry);\n      this.credits.completed(',
    to: '      this.credits.completed(',
  },
  {
    name: 'what is given up keeps its credit',
    file: SLOT,
    from: '      this.credits.released();',
    to: '',
  },
  {
    name: 'acknowledgements all go to the first partition',
    file: 'stages/accelerator-worker/ack-sender.ts',
    from: '      partition: correspondent.ackPartition,',
    to: '      partition: 0,',
  },
  // Workers
  {
    name: 'the worker finishes what is queued of a slot that goes away',
    file: WORKER,
    from: '      delivery.abandon();',
    to: '      delivery.finish([]);',
  },
  {
    name: 'a request that expires in the queue of a worker has no end',
    file: JOB_QUEUE,
    from: '      for (const work of plan.expired) expire(work);',
    to: '',
  },
  {
    name: 'a worker computes what has expired',
    file: 'core/batching/plan.ts',
    from: '    if (next.deadlineMs <= nowMs) {',
    to: '    if (next.deadlineMs <= Number.NEGATIVE_INFINITY) {',
  },
  {
    name: 'a batch that fails is a dead letter, all of it',
    file: RUNNER,
    from: '    else for (const work of batch) queue.pushAlone(work);',
    to: '    else for (const work of batch) this.#poison(work.payload, error);',
  },
  {
    name: 'a batch that fails is forgotten',
    file: RUNNER,
    from: '    else for (const work of batch) queue.pushAlone(work);',
    to: '    else queue.next(0, () => undefined);',
  },
  {
    name: 'a request alone that fails is not tried again',
    file: RUNNER,
    from: '    if (work.payload.failures < this.#config.tries) this.#deps.queue.pushAlone(work);\n    else ',
    to: '    if (work.payload.failures >= this.#config.tries) ',
  },
  {
    name: 'requests get the scores of the first in their batch',
    file: RUNNER,
    from: '      const item: ItemResult = result.items[index] ?? {',
    to: '      const item: ItemResult = result.items[index * 0] ?? {',
  },
  {
    name: 'nobody is told that an answer is late',
    file: RUNNER,
    from: '    const late = deadlineMs < clock.monotonicMs();',
    to: '    const late = deadlineMs < 0;',
  },
  {
    name: 'poison in a worker has no end',
    file: 'stages/accelerator-worker/job-endings.ts',
    from: '    delivery.deadLetter(code, message);\n  }',
    to: '    if (code.length < 0) delivery.deadLetter(code, message);\n  }',
  },
  // Policies
  {
    name: 'an older epoch is followed',
    file: ADOPTION,
    from: '  if (epoch < known.epoch) return ',
    to: '  if (epoch < 0) return ',
  },
  {
    name: 'the store is not polled, only hints are heeded',
    file: 'stages/pointer-follower.ts',
    from: '      void this.#ask();\n      this.#pollAfter',
    to: '      this.#pollAfter',
  },
  {
    name: 'a publication keeps the epoch',
    file: 'core/control/controller-state.ts',
    from: '    epoch: live ? scope.epoch + 1 : scope.epoch,',
    to: '    epoch: scope.epoch,',
  },
  {
    name: 'a command that was decided is decided again',
    file: 'core/control/controller-state.ts',
    from: "  if (input.commandId !== '' && state.decided.has(input.commandId)) return undefined;",
    to: '',
  },
  {
    name: 'a store that lost its pointer is not seeded again',
    file: 'stages/policy-controller/pointer-writer.ts',
    from: '      if (stored !== undefined && stored.term === term && meansTheSame(stored, pointer)) {',
    to: '      if (stored === undefined || (stored.term === term && meansTheSame(stored, pointer))) {',
  },
  {
    name: 'a new leader does not read the log',
    file: CONTROLLER,
    from: '    this.#replay(entries, commands, committedOffset);',
    to: '    if (committedOffset < 0) this.#replay(entries, commands, committedOffset);',
  },
  {
    name: 'a command is acknowledged before it is decided',
    file: 'stages/policy-controller/leading.ts',
    from: '    this.#queued.add(delivery);\n',
    to: '    delivery.finish([]);\n    this.#queued.add({ ...delivery, finish: () => undefined });\n    delivery = { ...delivery, finish: () => undefined };\n    this.#queued.add(delivery);\n',
  },
];
