import { describeServer } from './open-inference.suite.ts';

describeServer({
  name: 'kserve',
  modelName: '{family}-{version}',
  modelVersion: '',
  over: {
    http: {
      form: 'bytes',
      forms: ['bytes', 'numbers'],
      readsVersions: true,
      refusal: /HTTP [45]\d\d: .*idx=99 must be within/,
    },
    // Nothing is read of the version, and nothing is said of the reason.
    grpc: {
      form: 'bytes',
      forms: ['bytes', 'numbers'],
      readsVersions: false,
      refusal: /gRPC INTERNAL: Internal server error/,
    },
  },
  paths: ['toy-1', 'ranker-1'],
  restarts: false,
  isKilled: true,
});
