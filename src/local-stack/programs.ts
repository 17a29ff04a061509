import { MillraceError } from '../core/errors.ts';
import { cacheFolder, fetchArtifacts } from './artifacts.ts';
import { findCommand, findJava, type Java } from './java.ts';
import { findRedisServer } from './redis.ts';

/** The programs that a stack runs. */
export interface Programs {
  java: Java;
  /** Folder of Kafka's jars. */
  kafkaJars: string;
  /** A formatted, empty storage folder that each new broker begins with a copy of. */
  kafkaStorage: string;
  /** Apicurio's quarkus-run.jar. */
  registryJar: string;
  redisServer: string;
  /** Folder of the class archives for this Java. */
  classArchives: string;
}

/** Finds Java and the services' programs, fetching what is missing. Rejects with STACK_UNAVAILABLE and what to install. */
export async function findPrograms(
  environment: NodeJS.ProcessEnv,
  onProgress: (line: string) => void,
): Promise<Programs> {
  const java = await findJava(environment);
  if (java === undefined) {
    throw new MillraceError(
      'STACK_UNAVAILABLE',
      'no Java of at least 21 was found in JAVA_HOME, on the PATH or in /usr/lib/jvm',
      { advice: 'Install one (Debian: apt install openjdk-21-jre-headless; macOS: brew install openjdk@21)' },
    );
  }
  const mavenCommand = await findCommand('mvn', environment);
  const { redisServer: fetchedRedis, ...artifacts } = await fetchArtifacts({
    cache: cacheFolder(environment),
    java,
    mavenCommand,
    onProgress,
  });
  const redisServer = (await findRedisServer(environment)) ?? fetchedRedis;
  if (redisServer === undefined) {
    throw new MillraceError('STACK_UNAVAILABLE', 'no redis-server of at least 6.2 was found on the PATH', {
      value: `${process.platform}-${process.arch}`,
      advice: 'Install one (Debian: apt install redis-server; macOS: brew install redis)',
    });
  }
  return { java, redisServer, ...artifacts };
}
