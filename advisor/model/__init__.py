"""The data that the phases share: frozen dataclasses, no TensorFlow, no phase imported.

In: nothing.  Out: `recording` (what capture saw), `trace` (what the profile holds), `pipeline` (the executed graph,
measured), `finding` (what the rules say and which edits would mend it), `outcome` (the report), `catalog` (what is known of
tf.data's iterator types), `codec` (dataclasses to JSON and back).
"""
