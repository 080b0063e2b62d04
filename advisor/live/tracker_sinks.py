"""Runs of experiment trackers to which the samples of a watched run are logged: W&B, MLflow.

In: `LiveSample`s.  Out: metrics of the training loop by step, through the documented Python APIs of the trackers.

Inside a training program, metrics are added to the program's own run, if it has one; a run is never started there.
`advisor watch` starts a run of its own when `--log` asks for it, because the script's run belongs to another process.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any

from advisor.live.metric_sinks import training_scalars
from advisor.live.sinks import Background, Sink
from advisor.live.watched_run import Change
from advisor.model.errors import AdvisorError
from advisor.model.live import LiveSample
from advisor.model.text import message_of

PREFIX = "input_pipeline"
"""First part of the names of metrics: `input_pipeline/step_time_ms`."""
JOB_TYPE = "advisor-watch"
_INSTALL = {"wandb": "wandb", "mlflow": "mlflow (or mlflow-skinny)"}
_DEFAULT_EXPERIMENT = "0"


def open_tracker(tracker: str, name: str, run_name: str | None) -> Sink:
    """Log to an experiment tracker.

    Args:
        tracker: `wandb` or `mlflow`.
        name: What asked for it, for messages.
        run_name: Name of a new run; None: log to the run that is active in this process.

    Raises:
        AdvisorError: The tracker is not installed or refuses, or no run is active.
    """
    try:
        return Background(WandbRun(name, run_name) if tracker == "wandb" else MlflowRun(name, run_name))
    except ImportError:
        raise AdvisorError(f"{name} needs {_INSTALL[tracker]}: pip install {_INSTALL[tracker].split()[0]}.") from None
    except AdvisorError:
        raise
    except Exception as error:  # whatever a client or a server raises
        reason = (message_of(error) or type(error).__name__).rstrip(".")
        raise AdvisorError(f"{name}: {tracker} could not be used ({reason}).") from None


class WandbRun:
    """A run of Weights & Biases."""

    def __init__(self, name: str, run_name: str | None) -> None:
        """See `open_tracker`."""
        import wandb

        self.name = name
        self._is_own = run_name is not None
        if run_name is None:
            if wandb.run is None:
                raise AdvisorError(f"{name}: no run is active; call wandb.init() first.")
            self._run: Any = wandb.run
        else:
            self._run = _own_wandb_run(wandb, run_name)
        self._run.define_metric(f"{PREFIX}/step")
        self._run.define_metric(f"{PREFIX}/*", step_metric=f"{PREFIX}/step")

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """See `Sink`.

        In the program's own run, values join the row that the program logs next, so that its steps stay as they are.
        """
        for step, values in _rows(sample):
            self._run.log({f"{PREFIX}/step": step, **values}, commit=self._is_own)

    def close(self) -> None:
        """See `Sink`."""
        if self._is_own:
            self._run.finish()


def _own_wandb_run(wandb: Any, run_name: str) -> Any:  # noqa: ANN401
    """Start a run, without consequences for the script: neither its environment nor its run ids change."""
    before = dict(os.environ)
    try:
        return wandb.init(
            id=secrets.token_hex(4),
            resume="never",
            name=run_name,
            job_type=JOB_TYPE,
            save_code=False,
            settings=wandb.Settings(console="off", disable_git=True),
        )
    finally:
        for variable in os.environ.keys() - before.keys():  # such as the address of the process that this run uses
            del os.environ[variable]


class MlflowRun:
    """A run of MLflow, on the server or in the folder that MLflow's environment variables name."""

    def __init__(self, name: str, run_name: str | None) -> None:
        """See `open_tracker`."""
        import mlflow
        from mlflow.entities import Metric

        self.name = name
        self._metric: Any = Metric
        self._client = mlflow.MlflowClient()
        self._is_own = False
        if run_name is None:
            active = mlflow.active_run()
            if active is None:
                raise AdvisorError(f"{name}: no run is active in this thread; call mlflow.start_run() first.")
            self._run_id = str(active.info.run_id)
        elif given := os.environ.get("MLFLOW_RUN_ID"):  # the script will use the same run, and end it
            self._run_id = given
        else:
            run = self._client.create_run(
                _mlflow_experiment(self._client), run_name=run_name, tags={"mlflow.source.name": JOB_TYPE}
            )
            self._run_id, self._is_own = str(run.info.run_id), True

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """See `Sink`."""
        for step, values in _rows(sample):
            metrics = [self._metric(key, value, sample.time_ns // 1_000_000, step) for key, value in values.items()]
            self._client.log_batch(self._run_id, metrics=metrics)

    def close(self) -> None:
        """See `Sink`."""
        if self._is_own:
            self._client.set_terminated(self._run_id)


def _mlflow_experiment(client: Any) -> str:  # noqa: ANN401
    """Return the id of the experiment that MLflow's environment variables name; created if there is none of that name."""
    if given := os.environ.get("MLFLOW_EXPERIMENT_ID"):
        return given
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if not name:
        return _DEFAULT_EXPERIMENT
    experiment = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if experiment is None else experiment.experiment_id)


def _rows(sample: LiveSample) -> list[tuple[int, dict[str, float]]]:
    """Return (step, values) of the training loop."""
    return [
        (consumer.steps, {f"{PREFIX}/{key}": value for key, _, value in training_scalars(sample, consumer)})
        for consumer in sample.consumers
        if consumer.is_main
    ]
