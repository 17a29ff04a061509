import { describeServer } from './open-inference.suite.ts';

describeServer({
  name: 'mlserver',
  modelName: '{family}',
  modelVersion: '{version}',
  over: {
    http: {
      form: 'numbers',
      forms: ['numbers'],
      readsVersions: true,
      refusal: /HTTP [45]\d\d: .*idx=99 must be within/,
    },
    grpc: {
      form: 'bytes',
      forms: ['bytes', 'numbers'],
      readsVersions: true,
      refusal: /gRPC INTERNAL: .*idx=99 must be within/,
    },
  },
  paths: ['toy/versions/1', 'ranker/versions/1'],
  restarts: false,
  isKilled: true,
});
