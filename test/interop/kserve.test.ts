import { describeServer } from './open-inference.suite.ts';

describeServer({
  name: 'kserve',
  modelName: '{family}-{version}',
  modelVersion: '',
  form: 'binary',
  forms: ['binary', 'json'],
  paths: ['toy-1', 'ranker-1'],
  restarts: false,
});
