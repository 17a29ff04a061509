package millrace;

import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * A Kafka Streams topology of the pipeline's shape: three hops from ingress to results, bytes passed on as they are, at least once, set for low
 * latency. Arguments: brokers, application id, state folder, threads, then the topics in their order. Prints "ready" when it runs; ends when its
 * standard input does.
 */
public final class StreamsRelay {
  public static void main(String[] args) throws Exception {
    Properties settings = new Properties();
    settings.putAll(Map.of(
        StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0],
        StreamsConfig.APPLICATION_ID_CONFIG, args[1],
        StreamsConfig.STATE_DIR_CONFIG, args[2],
        StreamsConfig.NUM_STREAM_THREADS_CONFIG, args[3],
        StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArray().getClass(),
        StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArray().getClass(),
        StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100",
        StreamsConfig.producerPrefix("acks"), "all"));
    settings.put(StreamsConfig.producerPrefix("linger.ms"), "0");
    settings.put(StreamsConfig.producerPrefix("max.request.size"), "8388608");
    settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    settings.put(StreamsConfig.consumerPrefix("fetch.max.wait.ms"), "100");
    StreamsBuilder topology = new StreamsBuilder();
    for (int hop = 4; hop + 1 < args.length; hop += 1) {
      topology.<byte[], byte[]>stream(args[hop]).to(args[hop + 1]);
    }
    try (KafkaStreams streams = new KafkaStreams(topology.build(), settings)) {
      streams.setStateListener((now, before) -> {
        if (now == KafkaStreams.State.RUNNING) System.out.println("ready");
      });
      streams.start();
      while (System.in.read() >= 0) {}
    }
  }
}
