export const KAFKA_VERSION = '4.4.0';
export const REGISTRY_VERSION = '3.3.3';
const REDIS_ARTIFACT_VERSION = '1.4.3';

/** A Maven project whose `package` phase lays the services' programs out in the folders kafka, registry and redis. */
export const MAVEN_PROJECT = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace</groupId>
  <artifactId>local-stack</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    ${artifact('dependency', 'org.apache.kafka', 'kafka_2.13', KAFKA_VERSION)}
    ${artifact('dependency', 'org.slf4j', 'slf4j-nop', '1.7.36')}
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <groupId>org.apache.maven.plugins</groupId>
        <artifactId>maven-dependency-plugin</artifactId>
        <version>3.8.1</version>
        <executions>
          ${execution('kafka', 'copy-dependencies', '')}
          ${execution(
            'registry',
            'unpack',
            artifact(
              'artifactItem',
              'io.apicurio',
              'apicurio-registry-app',
              REGISTRY_VERSION,
              '<type>tar.gz</type><classifier>all</classifier>',
            ),
          )}
          ${execution(
            'redis',
            'unpack',
            artifact(
              'artifactItem',
              'com.github.codemonstur',
              'embedded-redis',
              REDIS_ARTIFACT_VERSION,
              '<includes>redis-server-*</includes>',
            ),
          )}
        </executions>
      </plugin>
    </plugins>
  </build>
</project>
`;

function artifact(tag: string, group: string, name: string, version: string, more = ''): string {
  return `<${tag}><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version>${more}</${tag}>`;
}

function execution(folder: string, goal: 'copy-dependencies' | 'unpack', item: string): string {
  const items = item === '' ? '' : `<artifactItems>${item}</artifactItems>`;
  return `<execution>
            <id>${folder}</id><phase>package</phase><goals><goal>${goal}</goal></goals>
            <configuration><outputDirectory>\${project.basedir}/${folder}</outputDirectory>${items}</configuration>
          </execution>`;
}
