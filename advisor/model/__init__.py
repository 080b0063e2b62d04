"""The data that the phases share: frozen dataclasses that depend neither on TensorFlow nor on a phase.

The main modules are `recording` (what capture recorded), `trace` (the contents of a profile), `pipeline` (the executed graph with
its measurements), `finding` (results of rules and the edits that fix them), `outcome` (the report), `catalog` (tf.data's iterator
types) and `codec` (dataclasses to JSON and back).
"""
