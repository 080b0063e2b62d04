"""Fills the objects of `pipeline_format` from the model: pipelines, iterators and calls."""

from __future__ import annotations

from advisor.model.calls import Call
from advisor.model.pipeline import Bottleneck, Iterator, LineCost, Pipeline, RootCall
from advisor.model.recording import Consumer
from advisor.report import pipeline_format as v1


def convert_pipeline(pipeline: Pipeline) -> v1.Pipeline:
    """Convert a pipeline with its iterators."""
    return v1.Pipeline.of(
        pipeline,
        consumer=pipeline.consumer and _consumer(pipeline.consumer),
        input_wait_share=pipeline.wait_share if pipeline.span_ns else None,
        iterators=[_iterator(iterator) for iterator in pipeline.iterators],
        bottleneck=pipeline.bottleneck and _bottleneck(pipeline, pipeline.bottleneck),
        num_calls=pipeline.root.num_calls,
        slowest_calls=[_root_call(call) for call in pipeline.slowest_calls],
    )


def convert_call(call: Call) -> v1.Call:
    """Convert a call of the user's file."""
    site = call.site
    return v1.Call.of(
        call,
        file=site and site.file,
        line=site and site.line,
        column=site and site.column,
        end_line=site and site.end_line,
        end_column=site and site.end_column,
    )


def _consumer(consumer: Consumer) -> v1.Consumer:
    site = consumer.site
    return v1.Consumer.of(consumer, file=site and site.file, line=site and site.line)


def _iterator(iterator: Iterator) -> v1.Iterator:
    return v1.Iterator.of(
        iterator,
        calls=[convert_call(call) for call in iterator.calls],
        lines=[_line(line) for line in iterator.lines],
        on_critical_path=iterator.is_on_critical_path,
    )


def _line(line: LineCost) -> v1.Line:
    at = line.at
    return v1.Line.of(
        line, file=at.file, line=max(1, at.line), function=at.function, text=at.text, via=at.via if at.via > 0 else None
    )


def _bottleneck(pipeline: Pipeline, bottleneck: Bottleneck) -> v1.Bottleneck:
    iterator = pipeline.iterator(bottleneck.iterator_id)
    call = iterator.main_call
    return v1.Bottleneck.of(
        bottleneck, name=iterator.name, long_name=iterator.long_name, site=v1.Site.maybe(call and call.site)
    )


def _root_call(call: RootCall) -> v1.RootCall:
    return v1.RootCall.of(call, on_critical_path=[index for index, is_on in enumerate(call.is_on_path) if is_on])
