"""Reviewed list of ops that `tf.vectorized_map` can apply to a whole batch without a loop.

In: an op type as TensorFlow writes it.  Out: whether a function of such ops alone can be tried with `Vectorize`. TensorFlow has
the last word: it raises an error while tracing if a use of an op cannot be converted.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.model.catalog import TABLE_SIZE_OPS

VECTORIZABLE_OPS = frozenset({
    "Abs", "Acos", "Acosh", "Add", "AddN", "AddV2", "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "All", "Any",
    "ApproximateEqual", "ArgMax", "ArgMin", "Asin", "Asinh", "Assert", "Atan", "Atan2", "Atanh", "AvgPool", "AvgPool3D",
    "BatchMatMul", "BatchMatMulV2", "BatchToSpaceND", "BiasAdd", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BroadcastTo",
    "Bucketize", "Case", "Cast", "Ceil", "CheckNumerics", "Cholesky", "ClipByValue", "Complex", "ComplexAbs", "ConcatV2",
    "Conj", "Conv2D", "Cos", "Cosh", "Cross", "Cumprod", "Cumsum", "DecodeCSV", "DepthToSpace", "DepthwiseConv2dNative",
    "Diag", "DiagPart", "Digamma", "Div", "DivNoNan", "Einsum", "Elu", "EnsureShape", "Equal", "Erf", "Erfc", "Exp",
    "ExpandDims", "Expm1", "FFT", "FFT2D", "FFT3D", "Fill", "Floor", "FloorDiv", "FloorMod", "Gather", "GatherNd",
    "GatherV2", "Greater", "GreaterEqual", "IFFT", "IFFT2D", "IFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D", "If", "Imag", "Inv",
    "Invert", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "LeftShift", "Less", "LessEqual", "Lgamma", "Log", "Log1p",
    "LogSoftmax", "LogicalAnd", "LogicalNot", "LogicalOr", "LowerBound", "MatMul", "MatrixBandPart", "MatrixDiagPart",
    "MatrixDiagPartV2", "MatrixDiagPartV3", "MatrixDiagV2", "MatrixDiagV3", "MatrixInverse", "MatrixSolve",
    "MatrixTriangularSolve", "Max", "MaxPool", "MaxPool3D", "Maximum", "Mean", "Min", "Minimum", "Mod", "Mul", "MulNoNan",
    "Neg", "NotEqual", "OneHot", "OnesLike", "Pack", "Pad", "PadV2", "ParseExampleV2", "ParseSingleExample",
    "PartitionedCall", "Pow", "Prod", "RFFT", "RFFT2D", "RFFT3D", "Rank", "Real", "RealDiv", "Reciprocal", "Relu", "Relu6",
    "Reshape", "ReverseV2", "RightShift", "Rint", "Roll", "Round", "Rsqrt", "Select", "SelectV2", "Selu", "Shape", "ShapeN",
    "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToBatchND", "SpaceToDepth",
    "Split", "SplitV", "Sqrt", "Square", "SquaredDifference", "Squeeze", "StatefulPartitionedCall", "StatelessCase",
    "StatelessIf", "StatelessWhile", "StopGradient", "StridedSlice", "Sub", "Sum", "Tan", "Tanh", "TensorListElementShape",
    "TensorListFromTensor", "TensorListGetItem", "TensorListLength", "TensorListReserve", "TensorListSetItem",
    "TensorListStack", "TensorScatterUpdate", "Tile", "TopK", "TopKV2", "Transpose", "TruncateDiv", "TruncateMod", "Unpack",
    "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", "UpperBound", "While", "Xdivy",
    "Xlog1py", "Xlogy", "ZerosLike",
})  # fmt: skip
"""Ops with a converter in `tensorflow/python/ops/parallel_for/pfor.py` of TensorFlow 2.21 whose results depend on their inputs
alone. Left out are ops that draw numbers (but see `DRAWING_OPS`), gradients, queues and stacks, and ops that print."""

LOOP_INVARIANT_OPS = frozenset({"LinSpace", "Range"})
"""Ops without a converter that functions apply to constants, and so once per batch. Of the element itself they cannot be
converted."""

DRAWING_OPS = frozenset({"RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"})
"""Ops that draw random numbers and have a converter that adds the batch to the shape they draw, so that each row gets its own
numbers (`_convert_random` in `pfor.py`). Left out are those whose parameters may differ from row to row, and those with a state
of their own (`tf.random.Generator`) or fixed by a seed argument (`tf.random.stateless_*`)."""

CHECKING_OPS = frozenset({"Assert", "CheckNumerics"})
"""Those of `VECTORIZABLE_OPS` that TensorFlow marks as stateful although they only end the run or do nothing."""

READING_OPS = TABLE_SIZE_OPS | {"LookupTableFind", "LookupTableFindV2"}
"""Look-ups, and the size of a table. TensorFlow marks them as stateful, but of a static table they are constant. They have no
converter, and take batches as they are."""

BRANCHING_OPS = frozenset({"Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"})
"""Those of `VECTORIZABLE_OPS` that compute one thing for some elements of a batch and another for the rest."""

_ALL, _FROM_SECOND, _FROM_THIRD = slice(None), slice(1, None), slice(2, None)
_FIRST, _SECOND, _THIRD, _LAST = slice(0, 1), slice(1, 2), slice(2, 3), slice(-1, None)
INVARIANT_INPUTS: Mapping[str, slice] = {
    **dict.fromkeys((*DRAWING_OPS, *LOOP_INVARIANT_OPS), _ALL),
    **dict.fromkeys(("Fill", "Split"), _FIRST),
    **dict.fromkeys(("AdjustContrastv2", "AdjustHue", "AdjustSaturation"), _SECOND),
    **dict.fromkeys(
        ("BroadcastTo", "ExpandDims", "Pad", "PadV2", "Reshape", "ReverseV2", "Tile", "Transpose"), _SECOND
    ),
    **dict.fromkeys(
        ("All", "Any", "ArgMax", "ArgMin", "Cumprod", "Cumsum", "Max", "Mean", "Min", "Prod", "Sum"), _SECOND
    ),
    **dict.fromkeys(("IRFFT", "IRFFT2D", "IRFFT3D", "RFFT", "RFFT2D", "RFFT3D"), _SECOND),
    **dict.fromkeys(("GatherV2", "Roll", "Slice"), _THIRD),
    **dict.fromkeys(("BatchToSpaceND", "ClipByValue", "DecodeCSV", "MatrixBandPart", "OneHot"), _FROM_SECOND),
    **dict.fromkeys(("ParseSingleExample", "SpaceToBatchND", "SplitV", "StridedSlice"), _FROM_SECOND),
    "ParseExampleV2": _FROM_THIRD,
    **dict.fromkeys(("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum"), _THIRD),
    "ConcatV2": _LAST,
}
"""Op type -> inputs that must be the same for all elements of a batch: the converters read them with `unstacked_input`, and ops
without one cannot be converted at all if an input differs."""

SHAPE_OPS = frozenset({"OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"})
"""Ops whose converters give results that are the same for all elements, because elements of a batch have equal shapes."""
