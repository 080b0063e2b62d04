"""What TensorBoard imports at its start, from the entry point `tensorboard_plugins`.

TensorBoard does not start if the import of a plugin raises. So this module imports nothing but TensorBoard's own base class, and
the tab is absent, with a sentence in the log, if anything else is missing or broken.
"""

from __future__ import annotations

from tensorboard.plugins import base_plugin


class TfDataLoader(base_plugin.TBLoader):
    """Makes the plugin, or does without."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        """Return the plugin; None, with a warning in TensorBoard's log, if it cannot be made.

        Args:
            context: TensorBoard's logdir and flags.
        """
        try:
            from advisor.tensorboard.plugin import TfDataPlugin

            return TfDataPlugin(context)
        except Exception as error:
            _warn(error)
            return None


def _warn(error: Exception) -> None:
    import logging

    logging.getLogger("tensorboard").warning(
        "TensorBoard starts without the tab tf.data, because tfdata-advisor cannot be loaded (%s: %s); install it again.",
        type(error).__name__,
        " ".join(str(error).split()),
    )
