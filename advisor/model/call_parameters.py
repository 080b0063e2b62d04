"""Parameters of the tf.data calls in positional order.

Methods that are not in `POSITIONS` are not edited. Source: the signatures of TF 2.16 to 2.21, as far as all of them agree on the
order.
"""

from __future__ import annotations

_FILES = ("filenames", "compression_type", "buffer_size", "num_parallel_reads")

POSITIONS: dict[str, tuple[str, ...]] = {
    "CsvDataset": (
        "filenames", "record_defaults", "compression_type", "buffer_size", "header", "field_delim", "use_quote_delim",
        "na_value", "select_cols", "exclude_cols",
    ),
    "FixedLengthRecordDataset": (
        "filenames", "record_bytes", "header_bytes", "footer_bytes", "buffer_size", "compression_type",
        "num_parallel_reads",
    ),
    "TFRecordDataset": _FILES,
    "TextLineDataset": _FILES,
    "batch": ("batch_size", "drop_remainder", "num_parallel_calls", "deterministic"),
    "bucket_by_sequence_length": (
        "element_length_func", "bucket_boundaries", "bucket_batch_sizes", "padded_shapes", "padding_values",
        "pad_to_bucket_boundary", "no_padding", "drop_remainder",
    ),
    "cache": ("filename",),
    "choose_from_datasets": ("datasets", "choice_dataset", "stop_on_empty_dataset"),
    "filter": ("predicate",),
    "flat_map": ("map_func",),
    "from_generator": ("generator", "output_types", "output_shapes", "args", "output_signature"),
    "from_tensor_slices": ("tensors",),
    "from_tensors": ("tensors",),
    "group_by_window": ("key_func", "reduce_func", "window_size", "window_size_func"),
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls", "deterministic"),
    "list_files": ("file_pattern", "shuffle", "seed"),
    "load": ("path", "element_spec", "compression", "reader_func"),
    "make_batched_features_dataset": (
        "file_pattern", "batch_size", "features", "reader", "label_key", "reader_args", "num_epochs", "shuffle",
        "shuffle_buffer_size", "shuffle_seed", "prefetch_buffer_size", "reader_num_threads", "parser_num_threads",
        "sloppy_ordering", "drop_final_batch",
    ),
    "make_csv_dataset": (
        "file_pattern", "batch_size", "column_names", "column_defaults", "label_name", "select_columns", "field_delim",
        "use_quote_delim", "na_value", "header", "num_epochs", "shuffle", "shuffle_buffer_size", "shuffle_seed",
        "prefetch_buffer_size", "num_parallel_reads", "sloppy", "num_rows_for_inference", "compression_type",
        "ignore_errors",
    ),
    "map": ("map_func", "num_parallel_calls", "deterministic"),
    "padded_batch": ("batch_size", "padded_shapes", "padding_values", "drop_remainder"),
    "prefetch": ("buffer_size",),
    "ragged_batch": ("batch_size", "drop_remainder", "row_splits_dtype"),
    "random": ("seed", "rerandomize_each_iteration"),
    "rebatch": ("batch_size", "drop_remainder"),
    "repeat": ("count",),
    "sample_from_datasets": ("datasets", "weights", "seed", "stop_on_empty_dataset", "rerandomize_each_iteration"),
    "shard": ("num_shards", "index"),
    "shuffle": ("buffer_size", "seed", "reshuffle_each_iteration"),
    "skip": ("count",),
    "snapshot": ("path", "compression", "reader_func", "shard_func"),
    "take": ("count",),
    "window": ("size", "shift", "stride", "drop_remainder"),
}  # fmt: skip
