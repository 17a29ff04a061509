"""Scores candidates through millrace with nothing but Confluent's own Kafka and Avro clients.

    python score.py --candidates 5

Brokers, registry and topic prefix come from MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL and MILLRACE_PREFIX unless given.
The request is made from the synthetic catalogue that the model `ranker` was trained beside. The tensors are plain bytes:
little-endian float32, row after row.
"""

import argparse
import json
import logging
import os
import struct
import sys
import time
import uuid
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

ROOT = Path(__file__).resolve().parents[3]
REQUEST_SCHEMA = ROOT / "schemas" / "score-request.v1.avsc"
CATALOGUE = ROOT / "models" / "catalogue"
FLOAT_BYTES = 4
USER_FEATURES = 64
ITEM_FEATURES = 32


CONNECT_S = 10


class Problem(Exception):
    """What a person can put right: one line, with what to do."""


def client_config(brokers, **more):
    """librdkafka says what it thinks of a broker that does not answer on standard error, several times a second, unless it is given another place."""
    log = logging.getLogger("score.kafka")
    log.setLevel(logging.CRITICAL)
    return {"bootstrap.servers": brokers, "error_cb": lambda error: None, "logger": log, **more}


def check_topics(brokers, prefix):
    """A broker that does not answer and a prefix of no installation are the two mistakes that are made most."""
    try:
        names = AdminClient(client_config(brokers)).list_topics(timeout=CONNECT_S).topics
    except KafkaException as error:
        raise Problem(
            f"no Kafka broker answers at {brokers} ({error.args[0].str()}): "
            "is it running? --brokers or MILLRACE_KAFKA_BROKERS names it; `millrace stack up` starts one"
        ) from error
    if f"{prefix}.ingress.v1" not in names or f"{prefix}.scored-results.v1" not in names:
        there = sorted(name[: -len(".ingress.v1")] for name in names if name.endswith(".ingress.v1"))
        raise Problem(
            f"no topics of the prefix {prefix!r} (there are those of: {', '.join(there) or 'none'}): "
            "--prefix or MILLRACE_PREFIX names it; `millrace topics apply` creates them"
        )


def check_registry(url):
    """Before anything is sent: the serializer asks the registry for the schema's id."""
    try:
        SchemaRegistryClient({"url": url, "timeout": CONNECT_S, "max.retries": 0}).get_subjects()
    except SchemaRegistryError as error:
        if error.http_status_code in (401, 403):
            raise Problem(f"the schema registry at {url} wants credentials ({error.error_message})") from error
        raise no_registry(url, error) from error
    except Exception as error:  # the HTTP library's own, or that of a URL that is none
        raise no_registry(url, error) from error


def no_registry(url, error):
    return Problem(
        f"no schema registry answers at {url} ({type(error).__name__}): "
        "--registry or MILLRACE_REGISTRY_URL names it, path included; `millrace stack up` prints that of its own"
    )


def fp32(name, shape, contents):
    return {"name": name, "datatype": "FP32", "shape": shape, "contents": contents}


def int64(name, values):
    return {"name": name, "datatype": "INT64", "shape": [len(values)], "contents": struct.pack(f"<{len(values)}q", *values)}


def make_request(request_id, candidates, deadline_ms=None):
    """The catalogue's first user at nine in the evening, and its most popular items. Fields with defaults may be left out."""
    items = json.loads((CATALOGUE / "items.json").read_text())
    best = sorted(range(len(items["ids"])), key=lambda row: -items["popularity"][row])[:candidates]
    features = (CATALOGUE / "items.features.f32").read_bytes()
    row_bytes = ITEM_FEATURES * FLOAT_BYTES
    rows = b"".join(features[row * row_bytes : (row + 1) * row_bytes] for row in best)
    user = bytearray((CATALOGUE / "users.features.f32").read_bytes()[: USER_FEATURES * FLOAT_BYTES])
    # Features 16 to 19 are the request's context: sine and cosine of the hour, weekend, mobile.
    struct.pack_into("<4f", user, 16 * FLOAT_BYTES, -0.7071, 0.7071, 0.0, 1.0)
    return {
        "requestId": request_id,
        "model": "ranker",
        "deadlineMs": deadline_ms,
        "baselineCandidates": len(best),
        "candidateIds": int64("ids", [items["ids"][row] for row in best]),
        "requestTensors": [fp32("user", [USER_FEATURES], bytes(user))],
        "candidateTensors": [fp32("item", [len(best), ITEM_FEATURES], rows)],
    }


def request_serializer(registry, schema=None):
    """Registers nothing: the schema is millrace's own, and the pipeline has registered it."""
    return AvroSerializer(registry, schema or REQUEST_SCHEMA.read_text(), conf={"auto.register.schemas": False})


class Ingress:
    """Produces to the ingress topic and answers where the record lies: that place is the request's identity."""

    def __init__(self, brokers, prefix):
        self.topic = f"{prefix}.ingress.v1"
        # murmur2_random is what Java clients do; librdkafka's own default hashes otherwise.
        # A request may have 1 MiB; librdkafka's own limit is a little lower.
        self._producer = Producer(client_config(brokers, **{
            "acks": "all",
            "partitioner": "murmur2_random",
            "message.max.bytes": 2**20,
        }))

    def send(self, key, value):
        placed = []

        def delivered(error, message):
            placed.append(error or (message.topic(), message.partition(), message.offset()))

        self._producer.produce(self.topic, key=key, value=value, on_delivery=delivered)
        self._producer.flush(30)
        if not placed:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if isinstance(placed[0], KafkaError):
            raise KafkaException(placed[0])
        return placed[0]


def ends_of(brokers, topic):
    """Where each partition ends now. By the admin client: Consumer.get_watermark_offsets may wait longer than it is told to."""
    admin = AdminClient(client_config(brokers))
    partitions = admin.list_topics(topic, 30).topics[topic].partitions
    wanted = {TopicPartition(topic, each): OffsetSpec.latest() for each in partitions}
    ends = admin.list_offsets(wanted, request_timeout=30)
    return [TopicPartition(topic, place.partition, end.result(30).offset) for place, end in ends.items()]


class Results:
    """Everything on scored-results from now on. Of several results with one identity, the first is the answer."""

    def __init__(self, brokers, prefix, registry):
        self.topic = f"{prefix}.scored-results.v1"
        self._deserialize = AvroDeserializer(registry)
        self._answers = {}
        self._consumer = Consumer(client_config(brokers, **{"group.id": f"score-{uuid.uuid4()}", "enable.auto.commit": False}))
        self._consumer.assign(ends_of(brokers, self.topic))

    def wait(self, identity, timeout_s):
        """The result of the request with that identity, and the message that it came in."""
        until = time.monotonic() + timeout_s
        while identity not in self._answers:
            if time.monotonic() > until:
                raise TimeoutError(f"no result of {identity} within {timeout_s} s")
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            result = self._deserialize(message.value(), SerializationContext(self.topic, MessageField.VALUE))
            place = result["identity"]
            # Lowest offset wins: a later result of the same identity is a repetition.
            self._answers.setdefault((place["topic"], place["partition"], place["offset"]), (result, message))
        return self._answers[identity]

    def close(self):
        self._consumer.close()


def scores_of(result):
    """(candidate id, score) in the order of the request."""
    count = result["candidatesScored"]
    ids = struct.unpack(f"<{count}q", result["candidateIds"]["contents"]) if result["candidateIds"] else range(count)
    return list(zip(ids, struct.unpack(f"<{count}f", result["scores"])))


def connection_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--brokers", default=os.environ.get("MILLRACE_KAFKA_BROKERS", "localhost:9092"))
    parser.add_argument("--registry", default=os.environ.get("MILLRACE_REGISTRY_URL", "http://localhost:8081"))
    parser.add_argument("--prefix", default=os.environ.get("MILLRACE_PREFIX", "millrace"))
    parser.add_argument("--timeout", type=float, default=30, help="seconds to wait for a result")
    return parser


def main():
    parser = connection_arguments("Scores popular items of the synthetic catalogue for its first user.")
    parser.add_argument("--candidates", type=int, default=5)
    parser.add_argument("--deadline-ms", type=int, default=1000)
    parser.add_argument("--request-id", default=str(uuid.uuid4()))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    check_topics(options.brokers, options.prefix)
    check_registry(options.registry)

    # The client has no timeout of its own: a call that the registry never answers would hang. With one it is tried again.
    registry = SchemaRegistryClient({"url": options.registry, "timeout": 10})
    serialize = request_serializer(registry)
    ingress = Ingress(options.brokers, options.prefix)
    results = Results(options.brokers, options.prefix, registry)
    request = make_request(options.request_id, options.candidates, options.deadline_ms)
    value = serialize(request, SerializationContext(ingress.topic, MessageField.VALUE))
    identity = ingress.send(options.request_id, value)
    try:
        result, message = results.wait(identity, options.timeout)
    except TimeoutError as error:
        raise Problem(f"{error}: is the pipeline running (`millrace up`)? A longer --timeout waits on") from error
    finally:
        results.close()

    scored = scores_of(result)
    if options.json:
        print(json.dumps({
            "requestId": result["requestId"],
            "identity": identity,
            "key": message.key().decode(),
            "resultPartition": message.partition(),
            "outcome": result["outcome"],
            "reason": result["reason"],
            "modelVersion": result["modelVersion"],
            "scores": scored,
        }))
    else:
        by = f" by {result['model']}@{result['modelVersion']}" if result["modelVersion"] else ""
        print(f"{result['outcome']} {result['requestId']}{by} in {result['timings']['totalMs']:.1f} ms")
        if result["reason"]:
            print(f"{result['reason']['code']}: {result['reason']['message']}")
        for candidate, score in sorted(scored, key=lambda pair: -pair[1]):
            print(f"{candidate:>8}  {score:.4f}")
    return 0 if result["outcome"] in ("SCORED", "DEGRADED") else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Problem as problem:
        sys.exit(f"score.py: {problem}")
    except KafkaException as error:
        sys.exit(f"score.py: Kafka refuses: {error.args[0].str()}")
