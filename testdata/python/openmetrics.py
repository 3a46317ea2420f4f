"""Reads an OpenMetrics text from standard input with prometheus_client's parser, which is strict, and prints what it found as JSON: samples by name, labels and value."""
import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = {}
for family in text_string_to_metric_families(sys.stdin.buffer.read().decode("utf-8")):
    assert family.name not in families, family.name
    families[family.name] = {"type": family.type, "unit": family.unit, "help": family.documentation,
                             "samples": [{"name": s.name, "labels": s.labels, "value": s.value} for s in family.samples]}
json.dump(families, sys.stdout)
