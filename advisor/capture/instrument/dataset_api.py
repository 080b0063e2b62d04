"""Wraps the functions of the public tf.data API that make datasets, so that the recorder sees their calls.

In: the imported `tensorflow` module and a `Recorder`.  Out: the same module with wrapped functions.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from advisor.capture.instrument.patches import Patches
from advisor.capture.instrument.recorder import Recorder
from advisor.model import catalog


def record_dataset_api(
    tensorflow: ModuleType, recorder: Recorder, warn: Callable[[str], None], patches: Patches | None = None
) -> None:
    """Wrap the public functions that make datasets. Functions that this TensorFlow version does not have are skipped.

    Args:
        tensorflow: The imported module.
        recorder: Records the calls.
        warn: Called with the text of each warning.
        patches: Records the replaced attributes, so that they can be restored; None if they never will be.
    """
    patches = Patches() if patches is None else patches
    data = tensorflow.data
    v1 = getattr(getattr(tensorflow.compat, "v1", None), "data", None)
    classes = [data.Dataset] + ([v1.Dataset] if v1 is not None else [])
    for cls in dict.fromkeys(base for c in classes for base in _dataset_bases(c)):
        for name in catalog.TRANSFORMATIONS:
            if inspect.isfunction(cls.__dict__.get(name)):
                patches.set(cls, name, recorder.wrap(cls.__dict__[name], name))
        for name in catalog.SOURCE_METHODS:
            if isinstance(cls.__dict__.get(name), staticmethod):
                patches.set(cls, name, staticmethod(recorder.wrap(cls.__dict__[name].__func__, name)))
    readers = [data] + ([v1] if v1 is not None else [])
    _record_constructors(readers, catalog.READERS, recorder, patches)
    experimental = [module.experimental for module in readers if hasattr(module, "experimental")]
    _record_constructors(experimental, catalog.EXPERIMENTAL_READERS, recorder, patches)
    for module in experimental:
        _record_functions(module, catalog.EXPERIMENTAL_FUNCTIONS, recorder, patches)
        _record_functions(getattr(module, "service", None), catalog.SERVICE_FUNCTIONS, recorder, patches)
    _record_source_maps(recorder, warn, patches)
    recorder.generators.install(recorder.generator_call, warn, patches)
    recorder.python_calls.install(recorder.traced_call, warn, patches)


def _dataset_bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.startswith("tensorflow.python.data.ops.dataset_ops")]


def _record_constructors(modules: list[Any], names: tuple[str, ...], recorder: Recorder, patches: Patches) -> None:
    """Wrap `__init__` in place: the class object stays the same, so `isinstance` and subclasses still work."""
    done: set[type] = set()
    for module in modules:
        for name in names:
            cls = getattr(module, name, None)
            if isinstance(cls, type) and cls not in done and "__init__" in cls.__dict__:
                done.add(cls)
                patches.set(cls, "__init__", recorder.wrap(cls.__init__, name, is_constructor=True))  # type: ignore[misc]


def _record_functions(module: Any, names: tuple[str, ...], recorder: Recorder, patches: Patches) -> None:  # noqa: ANN401
    for name in names:
        function = getattr(module, name, None)
        if inspect.isfunction(function):
            patches.set(module, name, recorder.wrap(function, name))


def _record_source_maps(recorder: Recorder, warn: Callable[[str], None], patches: Patches) -> None:
    """Record the source maps of the files that AutoGraph generates.

    This uses a private API. If it does not exist, calls in generated files are attributed to the line of the caller.
    """
    try:
        from tensorflow.python.autograph.pyct import loader

        original = loader.load_ast
    except (ImportError, AttributeError) as error:
        warn(f"Calls inside AutoGraph code cannot be mapped to lines ({error}).")
        return

    @functools.wraps(original)
    def load_ast(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        result = original(*args, **kwargs)
        try:
            _, _, source_map = result
            lines = {
                place.lineno: (origin.loc.filename, origin.loc.lineno) for place, origin in (source_map or {}).items()
            }
            generated = next((place.filename for place in source_map or {}), None)
            if generated is not None:
                recorder.finder.add_source_map(generated, lines)
        except (ValueError, TypeError, AttributeError):
            warn("AutoGraph's source map could not be read.")
        return result

    patches.set(loader, "load_ast", load_ast)
