export { type Client, type CommandInput, connect, type OutcomeInput, type RequestInput } from './client.ts';
export type { Connection, Transport } from './connection.ts';
export type { ReceivedResult, ResultsOptions } from './result-stream.ts';
export { fp32, int64, readFp32, readIds, text } from './tensors.ts';
