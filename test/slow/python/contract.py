"""What docs/contracts.md promises a client, tried with Confluent's Python client: one JSON line per promise, for the test to judge."""

import json
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "clients" / "python"))

from confluent_kafka import KafkaException
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from score import REQUEST_SCHEMA, Ingress, Results, connection_arguments, make_request, request_serializer

NO_SUCH_SCHEMA = 0x7FFF0002


def main():
    options = connection_arguments("Tries what the contract promises.").parse_args()
    registry = SchemaRegistryClient({"url": options.registry, "timeout": 10})
    ingress = Ingress(options.brokers, options.prefix)
    results = Results(options.brokers, options.prefix, registry)
    context = SerializationContext(ingress.topic, MessageField.VALUE)
    serialize = request_serializer(registry)

    def report(case, identity, **more):
        result, message = results.wait(identity, options.timeout)
        reason = result["reason"] or {}
        print(json.dumps({
            "case": case,
            "outcome": result["outcome"],
            "code": reason.get("code"),
            "requestId": result["requestId"],
            "key": message.key().decode(),
            "candidatesScored": result["candidatesScored"],
            "resultPartition": message.partition(),
            "identity": identity,
            **more,
        }))

    def good(request_id, writer=serialize, **fields):
        return writer({**make_request(request_id, 3, 60_000), **fields}, context)

    report("no frame", ingress.send("no-frame", b"{}"))
    report("unknown schema id", ingress.send("unknown-id", struct.pack(">bi", 0, NO_SUCH_SCHEMA) + good("r")[5:]))
    report("empty value", ingress.send("empty", b""))
    report("tombstone", ingress.send("tombstone", None))
    report("wrong key", ingress.send("wrong-key", good("right-id")))
    report("no key", ingress.send(None, good("keyless")))
    for turn in (1, 2):
        report("same requestId twice", ingress.send("twice", good("twice")), turn=turn)

    try:
        ingress.send("oversized", good("oversized") + bytes(2 * 2**20))
        oversized = "stored"
    except KafkaException as refused:
        oversized = refused.args[0].name()
    print(json.dumps({"case": "oversized", "error": oversized}))

    report("newer schema", ingress.send("newer", good("newer", versioned(registry, newer), sessionId="s-1")))
    report("older schema", ingress.send("older", good("older", versioned(registry, older))))
    results.close()


def newer(fields):
    return [*fields, {"name": "sessionId", "type": ["null", "string"], "default": None}]


def older(fields):
    return [field for field in fields if field["name"] not in ("explain", "region")]


def versioned(registry, change):
    """A serializer that registers a version of the schema of its own, as a producer that is released before or after millrace does."""
    schema = json.loads(REQUEST_SCHEMA.read_text())
    text = json.dumps({**schema, "fields": change(schema["fields"])})
    return AvroSerializer(registry, Schema(text, "AVRO"), conf={"auto.register.schemas": True})


if __name__ == "__main__":
    main()
