import { describeServer } from './open-inference.suite.ts';

describeServer({
  name: 'mlserver',
  modelName: '{family}',
  modelVersion: '{version}',
  form: 'json',
  forms: ['json'],
  paths: ['toy/versions/1', 'ranker/versions/1'],
  restarts: false,
});
