import { describeServer } from './open-inference.suite.ts';

describeServer({
  name: 'triton',
  modelName: '{family}',
  modelVersion: '{version}',
  form: 'binary',
  forms: ['binary', 'json'],
  paths: ['toy/versions/1', 'ranker/versions/1'],
  restarts: true,
});
