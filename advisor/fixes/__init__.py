"""Fixes applied to the user's source.

In: a `Fix` and the recorded calls it speaks of.  Out: new source text and its diff (`source`), with the help of `syntax`
(where a call stands in a file, to the character) and `names` (what a file calls TensorFlow).
"""
