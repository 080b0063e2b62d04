"""Folds the iterators of a profile into pipeline nodes: one node per dataset, regardless of epochs and interleave slots.

In: a `HostTrace`.  Out: `Forest`: all pipelines as one networkx DiGraph (edges run from an input to its consumer), and for every
iterator id the node it belongs to.

TensorFlow creates a new iterator for each epoch and for each slot of an interleave. These iterators share the dataset name and
the long name except for its `[n]` indices, so a node's key consists of these two along the chain of parents. The branches of a
zip or concatenate are different datasets and stay separate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator as Iter
from dataclasses import dataclass, field

import networkx as nx

from advisor.model.catalog import base_type
from advisor.model.trace import HostTrace, IteratorFacts
from advisor.profile.long_names import LongName, LongNameNode, parse_long_name, strip_indices

BRANCHING = frozenset(
    {"Zip", "Concatenate", "SampleFromDatasets", "DirectedInterleave", "Choose", "WeightedFlatMap", "IndexFlatMap"}
)
"""Types whose inputs are different datasets, distinguished by the index on the parent's name component."""

_NUMBER = re.compile(r"/_\d+$|(?<=^GeneratorDataset):\d+$")
"""Numbers that differ between iterators of one dataset: Grappler's, and those of the devices' generators."""

_UNNAMED = re.compile(r"(?<=Dataset):\d+$|(?<=DatasetV\d):\d+$|(?<=^WindowOp):\d+$")
"""TensorFlow's number in the name of a dataset without `name=`; it differs between calls of the function that creates it, and
between the datasets that `window` and `group_by_window` yield."""
_CALLS_ITS_FUNCTION = frozenset({"Interleave", "ParallelInterleave", "LegacyParallelInterleave", "FlatMap"})

MAX_NODES = 2_000
"""Maximum nodes per host. Real programs have a few hundred at most; a damaged file can have one per event, and some costs grow
with the square of a chain's length."""
MAX_DEPTH = 200
"""Maximum length of a chain of iterators; each one appears in the long names of its inputs."""

Key = tuple[str, ...]


@dataclass(eq=False)
class Node:
    """One node of the executed graph: all iterators of one dataset."""

    index: int
    type: str
    dataset_name: str
    long_name: str
    facts: list[IteratorFacts] = field(default_factory=list)
    pipeline: int = -1

    @property
    def base(self) -> str:
        """The type without its version, as in the catalog."""
        return base_type(self.type)


@dataclass(eq=False)
class Forest:
    """All pipelines of one host."""

    nodes: list[Node]
    """In the order of `Node.index`."""
    graph: nx.DiGraph[int]
    """The executed graph of `Node.index`: edges run from an input to its consumer, and every node has at most one consumer."""
    node_of_iterator: dict[int, int]
    """Iterator id -> `Node.index`."""
    warnings: list[str] = field(default_factory=list)

    @property
    def roots(self) -> list[Node]:
        """The iterators that consumers call: one per pipeline."""
        return [node for node in self.nodes if not self.graph.out_degree(node.index)]

    def consumer(self, node: Node) -> Node | None:
        """Return the node that consumes `node`; None for a root."""
        return next((self.nodes[index] for index in self.graph.successors(node.index)), None)

    def inputs(self, node: Node) -> list[Node]:
        """Return the direct inputs of a node; those of a branching type in the order of its branches."""
        return [self.nodes[index] for index in self.graph.predecessors(node.index)]

    def upstream(self, node: Node) -> list[Node]:
        """Return a node and everything upstream of it, consumers before their inputs, one branch after the other."""
        requests = self.graph.reverse(copy=False)
        return [self.nodes[index] for index in nx.dfs_preorder_nodes(requests, node.index)]


def _parsed(long_name: str) -> LongName:
    """The parsed long name; a name that does not parse counts as a single unknown type."""
    return parse_long_name(long_name) or LongName((LongNameNode(long_name),))


def _local_key(facts: IteratorFacts) -> Key:
    """The key that distinguishes a node from its siblings: type, dataset name and, under branching parents, the branch."""
    nodes = _parsed(facts.long_name).nodes
    own = nodes[-1].type
    branch = ""
    if len(nodes) > 1 and nodes[-2].index is not None:
        branch = f"[{nodes[-2].index}]" if base_type(nodes[-2].type) in BRANCHING else "[]"
    return own, _dataset_name(facts), branch


def _dataset_name(facts: IteratorFacts) -> str:
    """The dataset's name without the numbers that differ between iterators of one dataset.

    An `interleave` or `flat_map` calls its function for each input element. The datasets that these calls create are one
    dataset of the script, marked by an index on the interleave's component of the long name.
    """
    name = _NUMBER.sub("", facts.dataset_name)
    above = _parsed(facts.long_name).nodes[:-1]
    if any(node.index is not None and base_type(node.type) in _CALLS_ITS_FUNCTION for node in above):
        name = _UNNAMED.sub("", name)
    return name


def _cyclic(parent_of: dict[int, int]) -> set[int]:
    """Iterator ids whose chain of parents leads back to them; only damaged files have any."""
    links = _links(parent_of)
    if nx.is_directed_acyclic_graph(links):
        return set()
    components = nx.strongly_connected_components(links)
    return {i for component in components for i in component if len(component) > 1 or links.has_edge(i, i)}


def _links(parent_of: dict[int, int]) -> nx.DiGraph[int]:
    """The iterators as a graph whose edges run from a parent to its inputs."""
    links: nx.DiGraph[int] = nx.DiGraph()
    links.add_nodes_from(parent_of)
    links.add_edges_from((parent, i) for i, parent in parent_of.items() if parent in parent_of)
    return links


def _adopt_orphans(iterators: dict[int, IteratorFacts], parent_of: dict[int, int]) -> None:
    """Reparent iterators whose parent made no call in the window to an iterator with the same long name up to indices."""
    twins: dict[str, list[int]] = {}
    for iterator_id, facts in iterators.items():
        twins.setdefault(strip_indices(facts.long_name), []).append(iterator_id)
    for iterator_id, facts in iterators.items():
        parent = _parsed(facts.long_name).parent
        if parent_of[iterator_id] or not facts.parent_id or parent is None or facts.parent_id in iterators:
            continue
        candidates = twins.get(strip_indices(str(parent)), [])
        if candidates and len({_dataset_name(iterators[twin]) for twin in candidates}) == 1:
            parent_of[iterator_id] = candidates[0]


def _split_reused_roots(iterators: dict[int, IteratorFacts], parent_of: dict[int, int]) -> dict[int, IteratorFacts]:
    """Split roots with several inputs. A root has exactly one input, so such a root represents several roots.

    TensorFlow derives ids from addresses, and the root of a new epoch (or of an evaluation) can reuse the address of an old one
    (observed with 2.16). The first kind of input keeps the id; every other kind gets a copy of the root under an unused id.
    """
    inputs: dict[int, dict[Key, list[int]]] = {}
    for iterator_id, parent_id in parent_of.items():
        if parent_id and not parent_of[parent_id] and base_type(_parsed(iterators[parent_id].long_name).type) == "Root":
            inputs.setdefault(parent_id, {}).setdefault(_local_key(iterators[iterator_id]), []).append(iterator_id)
    split = dict(iterators)
    free = 1
    for root, kinds in inputs.items():
        for children in list(kinds.values())[1:]:
            while free in split:
                free += 1
            twin = free
            split[twin] = iterators[root]
            parent_of[twin] = 0
            for child in children:
                parent_of[child] = twin
    return split


def _chain_signature(iterator_id: int, inputs: dict[int, list[int]], keys: dict[int, Key]) -> Key:
    """The keys from a root along its first inputs; distinguishes two pipelines with the same injected root."""
    signature: list[str] = []
    current: int | None = iterator_id
    while current is not None:
        signature.append("|".join(keys[current]))
        below = sorted(inputs.get(current, ()), key=lambda child: keys[child])
        current = below[0] if below else None
    return tuple(signature)


_LOOP_CHAIN = frozenset({"Root", "Model", "Options", "Prefetch", "TakeWhile", "Scan"})
_UNNAMED_SCAN = re.compile(r"ScanDataset:\d+")


def without_loops(iterators: dict[int, IteratorFacts], loop_names: frozenset[str]) -> dict[int, IteratorFacts]:
    """Remove the Scan that AutoGraph adds for `for x in dataset` in a `tf.function`; it runs the body of the loop.

    The Scan is the consumer, so it and everything downstream of it are removed, and its input becomes the root.

    TensorFlow derives ids from addresses: after many epochs a Scan may have the id of an earlier one, whose consumers then have
    no input. They are removed by their names.

    Args:
        iterators: Iterators by id.
        loop_names: Dataset names of Scans that are known to be loops. An unnamed Scan under a `ReduceIterator` also counts.
    """
    loops = []
    for iterator_id, facts in iterators.items():
        name = _parsed(facts.long_name)
        is_loop = facts.dataset_name in loop_names or _UNNAMED_SCAN.fullmatch(facts.dataset_name)
        chain = {base_type(node.type) for node in name.nodes}
        if name.prefix == "ReduceIterator" and name.type == "Scan" and is_loop and chain <= _LOOP_CHAIN:
            loops.append(iterator_id)
    if not loops:
        return iterators
    links = _links({i: facts.parent_id for i, facts in iterators.items()})
    gone = set(loops).union(*(nx.ancestors(links, loop) for loop in loops))
    downstream = {strip_indices(str(name)) for loop in loops for name in _consumers(_parsed(iterators[loop].long_name))}
    inputs_first = reversed(list(nx.topological_sort(links))) if nx.is_directed_acyclic_graph(links) else ()
    for iterator_id in inputs_first:
        is_named = strip_indices(iterators[iterator_id].long_name) in downstream
        gone |= {iterator_id} if is_named and gone.issuperset(links.successors(iterator_id)) else set()
    return {i: facts for i, facts in iterators.items() if i not in gone}


def _consumers(name: LongName) -> Iter[LongName]:
    """The long names of everything downstream of an iterator."""
    while (parent := name.parent) is not None:
        yield parent
        name = parent


def fold(host: HostTrace, loop_names: frozenset[str] = frozenset()) -> Forest:
    """Fold the iterators of one host into pipelines. Never fails: the iterators of a damaged file become roots.

    Args:
        host: The profile of one host.
        loop_names: Dataset names of Scans that are loops; see `without_loops`.
    """
    iterators = without_loops(host.iterators, loop_names)
    cyclic = _cyclic({i: facts.parent_id for i, facts in iterators.items()})
    warnings = [f"{len(cyclic)} iterators name each other as parents; their links are ignored"] if cyclic else []
    parent_of = {
        i: facts.parent_id if facts.parent_id in iterators and i not in cyclic else 0 for i, facts in iterators.items()
    }
    _adopt_orphans(iterators, parent_of)
    parent_of |= dict.fromkeys(_cyclic(parent_of), 0)  # in a damaged file, an orphan may get one of its own inputs
    iterators = _split_reused_roots(iterators, parent_of)
    inputs: dict[int, list[int]] = {}
    for iterator_id, parent_id in parent_of.items():
        inputs.setdefault(parent_id, []).append(iterator_id)
    keys = {i: _local_key(facts) for i, facts in iterators.items()}
    signatures = _root_signatures(inputs, keys)

    forest = Forest(nodes=[], graph=nx.DiGraph(), node_of_iterator={}, warnings=warnings)
    by_path: dict[tuple[object, ...], Node] = {}
    inputs_of: dict[int, list[Node]] = {}
    depth: dict[int, int] = {}
    left_out: set[int] = set()
    for iterator_id in nx.topological_sort(_links(parent_of)):
        facts = iterators[iterator_id]
        parent_id = parent_of[iterator_id]
        consumer = forest.node_of_iterator.get(parent_id)
        level = 0 if consumer is None else depth[consumer] + 1
        path: tuple[object, ...] = (
            ("root", *signatures.get(iterator_id, (str(iterator_id),)))
            if consumer is None
            else (consumer, *keys[iterator_id])
        )
        node = by_path.get(path)
        is_too_much = node is None and (len(forest.nodes) >= MAX_NODES or level > MAX_DEPTH)
        if is_too_much or parent_id in left_out:
            left_out.add(iterator_id)
            continue
        if node is None:
            parsed = _parsed(facts.long_name)
            node = Node(
                index=len(forest.nodes),
                type=parsed.type,
                dataset_name=facts.dataset_name,
                long_name=str(parsed.without_indices()),
            )
            by_path[path] = node
            depth[node.index] = level
            forest.nodes.append(node)
            if consumer is not None:
                inputs_of.setdefault(consumer, []).append(node)
        node.facts.append(facts)
        forest.node_of_iterator[iterator_id] = node.index
    if left_out:
        warnings.append(
            f"{len(left_out)} iterators are left out: more than {MAX_NODES:,} datasets, or a chain of more than {MAX_DEPTH}"
        )
    forest.graph.add_nodes_from(range(len(forest.nodes)))
    for consumer, nodes in inputs_of.items():
        is_branching = forest.nodes[consumer].base in BRANCHING
        for node in sorted(nodes, key=_branch) if is_branching else nodes:  # a graph keeps the order of its edges
            forest.graph.add_edge(node.index, consumer)
    for number, root in enumerate(forest.roots):
        for node in forest.upstream(root):
            node.pipeline = number
    return forest


def _branch(node: Node) -> int:
    """The position of a node among its parent's inputs; a later input may have been recorded first."""
    parts = _parsed(node.facts[0].long_name).nodes
    index = parts[-2].index if len(parts) > 1 else None
    return -1 if index is None else index


def is_device_pipeline(forest: Forest, root: Node) -> bool:
    """Return whether `root` is a device buffer of a distributed dataset: (Root ->) Prefetch -> Generator (-> host pipeline).

    `from_generator` has a FlatMap between them, so it does not match.
    """
    chain = [node for node in forest.upstream(root) if node.base not in ("Root", "Model")]
    bases = [node.base for node in chain[:2]]
    return bases == ["Prefetch", "Generator"] or bases[:1] == ["Generator"]


def attach(host_root: Node, device_root: Node, forest: Forest) -> None:
    """Attach a host pipeline to the generator of the device pipeline that it feeds, so that both form one graph.

    Args:
        host_root: Root of the pipeline that runs on the host.
        device_root: Root of the pipeline on the device; one of its nodes is a `Generator`.
        forest: The graph that holds both; it is changed, and the host's nodes join the device's pipeline.
    """
    generator = next(node for node in forest.upstream(device_root) if node.base == "Generator")
    forest.graph.add_edge(host_root.index, generator.index)
    for node in forest.upstream(host_root):
        node.pipeline = device_root.pipeline


def _root_signatures(inputs: dict[int, list[int]], keys: dict[int, Key]) -> dict[int, Key]:
    """Signature per root iterator. A signature truncated by the window is completed to the longest one that it is a prefix of.

    A prefix of two different pipelines is ambiguous and stays as it is.
    """
    signatures = {root: _chain_signature(root, inputs, keys) for root in inputs.get(0, ())}
    completed: dict[Key, Key] = {}
    distinct = sorted(set(signatures.values()), key=len)
    if len(distinct) > MAX_NODES:  # a damaged file: completing this many signatures is not worth its quadratic cost
        return signatures
    for signature in distinct:
        longer = [s for s in distinct if len(s) > len(signature) and s[: len(signature)] == signature]
        is_one_chain = longer and all(longer[-1][: len(s)] == s for s in longer)
        completed[signature] = longer[-1] if is_one_chain else signature
    return {root: completed[signature] for root, signature in signatures.items()}
